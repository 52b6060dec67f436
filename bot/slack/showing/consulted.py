"""What an answer stands on: the results worth a line, what the others amount to, how to open each.

A line goes to what the answer cites and to what failed or came cut; the rest is counted, never
dropped in silence. Every result can be opened, by its button or from the menu.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.claims import cited
from bot.domain.ids import TurnId
from bot.domain.turn_events import Evidence
from bot.slack.showing.chips import duration, short, span, subject
from bot.slack.text.blocks import Block, Option, actions, button, context, select
from bot.slack.text.limits import BUTTONS_PER_ROW, OPTION_TEXT_CHARS
from bot.slack.text.links import remark
from bot.slack.text.mrkdwn import plain
from tools.records import ToolInvocationRecord

OPEN_ACTION = "evidence:open"
SELECT_ACTION = "evidence:select"
MAX_LINES = 8
# The lines kept for failed and cut results when the answer cites more than fits.
_TROUBLE_LINES = 4
_LINE_CHARS = 110
# Three full groups of a menu; an investigation of 8 rounds stays far below.
MAX_OPENABLE = 300
# With 8 lines, remarks and 3,800 bytes of text this stays below the 13,200 characters that
# Slack takes in one message.
_MENU_CHARS = 5_200
_NAMED = 5
_LONG_NAME = re.compile(r"\b([a-z0-9]+)_[a-z0-9_]+_([a-z0-9]+)\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Result:
    """One numbered result with what was asked."""

    evidence: Evidence
    record: ToolInvocationRecord | None

    @property
    def number(self) -> int:
        return self.evidence.number

    @property
    def name(self) -> str:
        """Tool and what it was about: `get_logs checkout`."""
        about = subject(self.record.arguments) if self.record else ""
        return " ".join(filter(None, (short(self.evidence.tool), about)))

    @property
    def found(self) -> str:
        """What came of it, in a few words: a count, or why there is none."""
        message = self.record.message if self.record and not self.evidence.ok else ""
        return self.evidence.summary or message

    @property
    def mark(self) -> str:
        return "" if self.evidence.ok else "✗ "


def consulted(
    turn_id: TurnId,
    text: str,
    evidence: Sequence[Evidence],
    records: Mapping[str, ToolInvocationRecord],
) -> Iterator[Block]:
    """The blocks for an answer's results; `text` is the answer, `records` are by call id."""
    if not evidence:
        return
    results = [_Result(each, records.get(each.tool_call_id)) for each in evidence]
    named = _cited_first(text, results)
    listed = _listed(named, results)
    yield context("\n".join(["*Consulted*", *map(_line, listed), *_rest(results, listed)]))
    yield actions([*_buttons(turn_id, named or listed, results), *_menu(turn_id, results)])
    if len(results) > MAX_OPENABLE:
        yield context(f"Results after E{results[MAX_OPENABLE - 1].number} cannot be opened here.")


def _cited_first(text: str, results: Sequence[_Result]) -> list[_Result]:
    """What the answer cites, in the order of its argument."""
    by_number = {each.number: each for each in results}
    return [by_number[number] for number in cited(text) if number in by_number]


def _listed(named: Sequence[_Result], results: Sequence[_Result]) -> list[_Result]:
    """At most eight results by number: all of them, or the cited ones and those with trouble."""
    if len(results) <= MAX_LINES:
        return list(results)
    failed = [each for each in results if not each.evidence.ok and each not in named]
    cut = [each for each in results if each.evidence.ok and each.evidence.truncated]
    trouble = [*failed, *(each for each in cut if each not in named)]
    kept = named[: MAX_LINES - min(len(trouble), _TROUBLE_LINES)]
    chosen = [*kept, *trouble[: MAX_LINES - len(kept)]] or results[:MAX_LINES]
    return sorted(chosen, key=lambda each: each.number)


def _line(result: _Result) -> str:
    evidence = result.evidence
    asked = span(result.record.arguments) if result.record else ""
    asked = "" if asked in result.found else asked
    told = remark(" · ".join(filter(None, (result.name, result.found, asked))), _LINE_CHARS)
    cut = "cut · " if evidence.truncated else ""
    again = "from the cache · " if result.record and result.record.cached else ""
    took = duration(evidence.latency_ms)
    return f"*E{result.number}* {result.mark}{told} · {cut}{again}{took}"


def _rest(results: Sequence[_Result], listed: Sequence[_Result]) -> list[str]:
    """One line for all that has none of its own."""
    shown = {each.number for each in listed}
    rest = [each.evidence for each in results if each.number not in shown]
    if not rest:
        return []
    failed = [each.number for each in rest if not each.ok]
    cut = [each.number for each in rest if each.ok and each.truncated]
    told = [f"{len(numbers)} {word} ({_names(numbers)})"
            for word, numbers in (("failed", failed), ("cut", cut)) if numbers]  # fmt: skip
    took = duration(sum(each.latency_ms for each in rest))
    return [f"… and {len(rest)} more: {', '.join(told) or 'none failed or cut'} · {took} together"]


def _names(numbers: Sequence[int]) -> str:
    more = ["…"] if len(numbers) > _NAMED else []
    return ", ".join([*(f"E{number}" for number in numbers[:_NAMED]), *more])


def _buttons(
    turn_id: TurnId, named: Sequence[_Result], results: Sequence[_Result]
) -> Iterator[Block]:
    chosen = results if len(results) <= BUTTONS_PER_ROW else named[:BUTTONS_PER_ROW]
    for each in sorted(chosen, key=lambda result: result.number):
        yield button(
            f"Open E{each.number}",
            f"{OPEN_ACTION}:{each.number}",
            _value(turn_id, each),
            spoken=f"Open E{each.number}: {each.name}",
        )


def _menu(turn_id: TurnId, results: Sequence[_Result]) -> list[Block]:
    if len(results) <= BUTTONS_PER_ROW:
        return []
    offered = results[:MAX_OPENABLE]
    room = min(OPTION_TEXT_CHARS, _MENU_CHARS // len(offered))
    options = [Option(_option(each, room), _value(turn_id, each)) for each in offered]
    return [select("Open any result…", SELECT_ACTION, options)]


def _option(result: _Result, max_chars: int) -> str:
    """`E12 compare_to_baseline cart · within baseline`; long metric names give way first."""
    head = f"E{result.number} {result.mark}{result.name}"
    whole = " · ".join(filter(None, (head, result.found)))
    if len(whole) > max_chars:
        whole = " · ".join(filter(None, (head, _LONG_NAME.sub(r"\1_…_\2", result.found))))
    return plain(whole, max_chars)


def _value(turn_id: TurnId, result: _Result) -> str:
    return f"{turn_id}|{result.number}"
