"""What stands below a finished answer: how it ended, doubts, what was consulted, the footer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from bot.domain.events import Evidence, TurnEnd, TurnFinished
from bot.domain.ids import TurnId
from bot.slack.blocks import Block, actions, button, context
from bot.slack.chips import duration, short, subject
from bot.slack.limits import BUTTONS_PER_ROW
from bot.slack.mrkdwn import inline
from tools.records import ToolInvocationRecord

EVIDENCE_ACTION = "evidence:open"
# 40 lines of 110 characters, their buttons, doubts, notices and 3,800 bytes of text stay together
# below the 13,200 characters that Slack takes in one message.
_EVIDENCE_SHOWN = 40
_LINE_CHARS = 110
_LINES_PER_BLOCK = 20
_REMARKS_SHOWN = 6
_REMARK_CHARS = 150
# The provider that is no model at all.
_TRIAGE = "triage"


@dataclass(frozen=True, slots=True)
class Closing:
    """The blocks below the text; `headline` stands for the text where there is none."""

    headline: str
    blocks: tuple[Block, ...]


def closing(turn_id: TurnId, final: TurnFinished) -> Closing:
    """Everything below the answer's text."""
    ending = _ending(final)
    blocks = [context(ending)] if ending else []
    if final.doubts:
        blocks.append(context(_doubts(final)))
    blocks += _consulted(turn_id, final)
    remarks = [f"ℹ️ {inline(each, _REMARK_CHARS)}" for each in final.notices[:_REMARKS_SHOWN]]
    blocks.append(context("\n".join([*remarks, _footer(final)])))
    return Closing(ending or "The model gave no text.", tuple(blocks))


def _ending(final: TurnFinished) -> str:
    kept = _kept(final)
    match final.end:
        case TurnEnd.ANSWERED:
            return "" if final.text.strip() else "⚠ The model ended without a text. " + kept
        case TurnEnd.DEPTH_EXCEEDED:
            return (
                f"⚠ No conclusion after {final.rounds} rounds of tools, which is the limit. {kept}"
                " Ask a narrower question to go on."
            )
        case TurnEnd.STOPPED:
            return f"⏹ Stopped. {kept}"
        case TurnEnd.BUDGET:
            return f"⚠ The model budget is spent. {kept} `/kortex budget` shows the limits."
        case TurnEnd.FAILED:
            return f"🔴 This answer could not be finished. {kept} Nothing was changed; ask again."
        case _:
            assert_never(final.end)


def _kept(final: TurnFinished) -> str:
    count = len(final.evidence)
    if count == 0:
        return "No results were gathered."
    return f"{count} result{'s' if count > 1 else ''} kept below."


def _doubts(final: TurnFinished) -> str:
    shown = [f"• {inline(each, _REMARK_CHARS)}" for each in final.doubts[:_REMARKS_SHOWN]]
    more = len(final.doubts) - len(shown)
    rest = [f"• … and {more} more"] if more else []
    return "\n".join(
        ["⚠ *Check before you rely on it:* not found in what was consulted", *shown, *rest]
    )


def _consulted(turn_id: TurnId, final: TurnFinished) -> Iterator[Block]:
    shown = final.evidence[:_EVIDENCE_SHOWN]
    if not shown:
        return
    records = {outcome.record.tool_call_id: outcome.record for outcome in final.outcomes}
    lines = ["*Consulted*"]
    lines += [_line(each, records.get(each.tool_call_id)) for each in shown]
    if more := len(final.evidence) - len(shown):
        lines.append(f"… and {more} more")
    for start in range(0, len(lines), _LINES_PER_BLOCK):
        yield context("\n".join(lines[start : start + _LINES_PER_BLOCK]))
    for start in range(0, len(shown), BUTTONS_PER_ROW):
        row = shown[start : start + BUTTONS_PER_ROW]
        yield actions([_open_button(turn_id, each) for each in row])


def _line(evidence: Evidence, record: ToolInvocationRecord | None) -> str:
    about = subject(record.arguments) if record else ""
    message = record.message if record and not evidence.ok else ""
    what = " ".join(filter(None, (short(evidence.tool), about)))
    mark = "" if evidence.ok else "✗ "
    cut = "cut" if evidence.truncated else ""
    details = (evidence.summary or message, cut, duration(evidence.latency_ms))
    line = " · ".join([what, *filter(None, details)])
    return f"[{evidence.number}] {mark}{inline(line, _LINE_CHARS)}"


def _open_button(turn_id: TurnId, evidence: Evidence) -> Block:
    return button(
        f"[{evidence.number}] {short(evidence.tool)}",
        f"{EVIDENCE_ACTION}:{evidence.number}",
        f"{turn_id}|{evidence.number}",
    )


def _footer(final: TurnFinished) -> str:
    rounds = f"{final.rounds} round{'' if final.rounds == 1 else 's'}"
    if final.provider == _TRIAGE:
        return f"no model was used · triage · {rounds}"
    model = "/".join(inline(each, 60) for each in (final.provider, final.model) if each)
    cost = _dollars(final.cost_usd_micros)
    return " · ".join(filter(None, (model, rounds, cost)))


def _dollars(usd_micros: int | None) -> str:
    if usd_micros is None:
        return ""
    return f"${usd_micros / 1_000_000:.4f}"
