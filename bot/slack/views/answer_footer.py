"""What stands below a finished answer: how it ended, the footer, and one row of buttons."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from bot.domain.claims import ClaimState
from bot.domain.ids import TurnId
from bot.domain.turn_events import TurnEnd, TurnFinished
from bot.slack.text.blocks import Block, actions, context
from bot.slack.text.links import remark
from bot.slack.text.mrkdwn import inline
from bot.slack.views.feedback import feedback_buttons
from bot.slack.views.sources import evidence_button

_USER_ID = re.compile(r"[UW][A-Z0-9]{1,30}")
_REMARKS_SHOWN = 2
_REMARK_CHARS = 110
_CHANGES_CHARS = 600
# What people may say helped or did not: whatever came to an end of its own.
_JUDGED = frozenset({TurnEnd.ANSWERED, TurnEnd.DEPTH_EXCEEDED})
# The provider that is no model at all.
_TRIAGE = "triage"


@dataclass(frozen=True, slots=True)
class Closing:
    """The blocks below the text; `headline` stands for the text where there is none.

    `failure` is one sentence about an answer that broke off, "" for one that is whole or was stopped.
    """

    headline: str
    failure: str
    blocks: tuple[Block, ...]


def closing(
    turn_id: TurnId,
    final: TurnFinished,
    text: str,
    *,
    show_cost: bool = True,
    cards: Sequence[str] = (),
) -> Closing:
    """Everything below the answer's text, which may be what was streamed.

    `cards` are lines of safe mrkdwn with links to open proposals.
    """
    sentences = [each for each in _ending(final, text) if each]
    ending = " ".join(sentences)
    blocks = [context(ending)] if ending else []
    blocks += [context("\n".join(cards))] if cards else []
    remarks = [f"ℹ️ {remark(each, _REMARK_CHARS)}" for each in final.notices[:_REMARKS_SHOWN]]
    blocks.append(context("\n".join([*remarks, _footer(final, show_cost=show_cost)])))
    row = [evidence_button(turn_id, len(final.evidence))] if final.evidence else []
    row += feedback_buttons(turn_id) if final.end in _JUDGED else ()
    blocks += [actions(row)] if row else []
    is_known = final.end is TurnEnd.STOPPED  # to people in the thread, who stopped it
    failure = sentences[0] if sentences and not is_known else ""
    return Closing(ending or "The model gave no text.", failure, tuple(blocks))


def _ending(final: TurnFinished, text: str) -> Sequence[str]:
    kept = _kept(final, text)
    match final.end:
        case TurnEnd.ANSWERED:
            return () if final.text.strip() else ("⚠ The model ended without a text.", kept)
        case TurnEnd.DEPTH_EXCEEDED:
            return (
                f"⚠ No conclusion within {final.rounds - 1} rounds of tools (`[llm] max_tool_depth`).",
                kept,
                "Ask a narrower question to go on.",
            )
        case TurnEnd.STOPPED:
            return f"⏹ Stopped{_by(final.stopped_by)}.", kept
        case TurnEnd.BUDGET:
            return (
                "⚠ The model budget allows no further round now.",
                kept,
                "`/kortex budget` shows the limits.",
            )
        case TurnEnd.FAILED:
            changes = inline(final.changes, _CHANGES_CHARS) or "Nothing was changed; ask again."
            return "🔴 This answer could not be finished.", kept, changes
        case _:
            assert_never(final.end)


def _by(user: str) -> str:
    return f" by <@{user}>" if _USER_ID.fullmatch(user) else ""


def _kept(final: TurnFinished, text: str) -> str:
    count = len(final.evidence)
    if count == 0:
        if text.strip():
            return "What it says so far is kept above."
        # A turn without a round may have been resumed: what it had shown before is not known here.
        return "No results were gathered." if final.rounds else ""
    return f"{count} result{'s' if count > 1 else ''} behind *Evidence*."


def _footer(final: TurnFinished, *, show_cost: bool) -> str:
    rounds = f"{final.rounds} round{'' if final.rounds == 1 else 's'}"
    held = _held(final)
    if final.provider == _TRIAGE:
        asked = final.usage.input + final.usage.output
        how = "answered without a model" if asked else "no model was used"
        return " · ".join(filter(None, (how, "triage", rounds, held)))
    if not final.provider and not final.rounds and final.end is TurnEnd.ANSWERED:
        return "no model was used"
    model = "/".join(inline(each, 60) for each in (final.provider, final.model) if each)
    cost = _dollars(final.cost_usd_micros) if show_cost else ""
    return " · ".join(filter(None, (model, rounds, cost, held)))


def _held(final: TurnFinished) -> str:
    """How many statements the results entail; those that fail are marked in the text."""
    count = len(final.claims)
    if not count:
        return ""
    entailed = sum(claim.state is ClaimState.SUPPORTED for claim in final.claims)
    return f"{entailed} of {count} statement{'' if count == 1 else 's'} checked"


def _dollars(usd_micros: int | None) -> str:
    if usd_micros is None:
        return ""
    return f"${usd_micros / 1_000_000:.4f}"
