"""What is behind *Evidence*: the whole answer, the list of its results, and one of them in detail.

The list is complete: results without a line are in its menu. A modal takes neither charts nor
tables (https://docs.slack.dev/reference/block-kit/blocks), so both are text; the JSON is behind a
button.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from bot.domain.asked import link_of, query_of, window_of
from bot.domain.charted import charts_of
from bot.domain.findings import details_of
from bot.domain.ids import TurnId
from bot.domain.markdown_blocks import Kind, rows_of
from bot.domain.markdown_blocks import blocks as blocks_of
from bot.domain.tabled import table_of
from bot.domain.turn_events import Evidence
from bot.slack.text.blocks import Block, Option, actions, button, context, section, select
from bot.slack.text.card_spoofing import disclaimed
from bot.slack.text.limits import BUTTON_URL_CHARS, OPTION_TEXT_CHARS
from bot.slack.text.links import NO_LINKS, remark
from bot.slack.text.markdown import as_mrkdwn
from bot.slack.text.mrkdwn import plain, visible
from bot.slack.text.split import split
from bot.slack.views.charts import aligned, laid_out, plotted
from bot.slack.views.modals import (
    View,
    evidence_view,
    fitting_parts,
    headline,
    paragraph,
    preformatted,
    view_of,
)
from bot.slack.views.tool_chips import duration, short, span, subject

OVERVIEW_ACTION = "evidence:all"
OPEN_ACTION = "evidence:open"
SELECT_ACTION = "evidence:select"
# A view takes 100 blocks (https://docs.slack.dev/reference/views); four are the menu and its notes.
MAX_LINES = 90
# Three full groups of a menu; an investigation of 8 rounds stays far below.
MAX_OPENABLE = 300
# 2,800 bytes each: a view may weigh 250 kB, and the results need some of its blocks.
_MOST_SECTIONS = 45
_SECTION_BYTES = 2_800
_MOST_ANSWER_CHARS = 120_000
_LINE_CHARS = 200
_DETAIL_CHARS = 220
_NOTICE_CHARS = 280
_MOST_NOTICES = 10  # the same
_MOST_DETAILS = 12  # a section takes 3,000 characters
_LONG_NAME = re.compile(r"\b([a-z0-9]+)_[a-z0-9_]+_([a-z0-9]+)\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class Source:
    """One numbered result, with the arguments of its call; these are empty where none were kept."""

    evidence: Evidence
    arguments: Mapping[str, JsonValue]

    @property
    def number(self) -> int:
        return self.evidence.number

    @property
    def name(self) -> str:
        """Tool and what it was about: `get_logs checkout`."""
        return " ".join(filter(None, (short(self.evidence.tool), subject(self.arguments))))

    @property
    def mark(self) -> str:
        """Leads the name of a call that failed."""
        return "" if self.evidence.ok else "✗ "


def evidence_button(
    turn_id: TurnId, count: int, notices: int = 0, *, has_more: bool = False
) -> tuple[str, Block]:
    """Opens `results_view` of that turn, by its name; without results that of what else it has."""
    if not count:
        name, told = ("Whole answer",) * 2 if has_more else ("Notices", f"Notices ({notices})")
        return name, button(told, OVERVIEW_ACTION, turn_id)
    return "Evidence", button(
        f"Evidence ({count})",
        OVERVIEW_ACTION,
        turn_id,
        spoken=f"Evidence: open the {count} result{'' if count == 1 else 's'} behind this answer",
    )


def results_view(
    turn_id: TurnId,
    results: Sequence[Source],
    metadata: str,
    notices: Sequence[str] = (),
    answer: str = "",
) -> View:
    """The modal with the whole `answer`, and every result and notice of a turn.

    `metadata` comes back with a press in it.
    """
    told = _whole(answer)
    room = MAX_LINES - len(told)
    failed, cut = _numbered(results, ok=False), _numbered(results, ok=True)
    notes = [f"{len(results)} result{'' if len(results) == 1 else 's'}"]
    notes += [f"{len(found)} {word} ({', '.join(found)})"
              for found, word in ((failed, "failed"), (cut, "cut")) if found]  # fmt: skip
    blocks: list[JsonValue] = [*told, context(remark(" · ".join(notes), _LINE_CHARS))]
    blocks += _notices(notices)
    blocks += _details([each.evidence for each in results])
    blocks += [_line(turn_id, each) for each in results[:room]]
    if len(results) > room:
        blocks.append(actions([_menu(turn_id, results)]))
    if len(results) > MAX_OPENABLE:
        last = results[MAX_OPENABLE - 1].number
        blocks.append(context(f"Results after E{last} cannot be opened here."))
    return view_of("Evidence", blocks) | {"private_metadata": metadata}


def answer_view(answer: str) -> View:
    """The modal of the whole answer for people who may read it, but no results."""
    return view_of("Whole answer", [*_whole(answer)])


def fits_view(answer: str) -> bool:
    """Whether a modal can hold that answer in whole, and the results."""
    return len(answer) <= _MOST_ANSWER_CHARS and len(_whole(answer)) <= _MOST_SECTIONS


def _whole(answer: str) -> list[Block]:
    """It as sections, with its tables as text; a modal takes no other form of them."""
    pieces: list[str] = []
    at = 0
    for block in blocks_of(answer):
        if block.kind is Kind.TABLE:
            pieces += [answer[at : block.start], "```\n", _aligned(rows_of(answer, block)), "\n```"]
            at = block.end
    text = disclaimed("".join([*pieces, answer[at:]]).strip("\n"))
    return [section(as_mrkdwn(piece.safe)) for piece in split(text, NO_LINKS, _SECTION_BYTES)]


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("**", "").replace("`", "") for cell in row] for row in rows]
    return "\n".join(aligned(cells))


def _notices(notices: Sequence[str]) -> list[JsonValue]:
    """What people should know about the answer: the message below it shows only two of these, cut."""
    if not notices:
        return []
    lines = [f"• {remark(each, _NOTICE_CHARS)}" for each in notices[:_MOST_NOTICES]]
    rest = len(notices) - len(lines)
    lines += [f"• and {rest} more"] if rest else []
    return [section("\n".join(["*Notices*", *lines]))]


def _details(evidence: Sequence[Evidence]) -> list[JsonValue]:
    lines = [f"• {remark(each, _DETAIL_CHARS)}" for each in details_of(evidence)[:_MOST_DETAILS]]
    return [section("\n".join(["*Also found*", *lines]))] if lines else []


def _numbered(results: Sequence[Source], *, ok: bool) -> list[str]:
    return [
        f"E{each.number}"
        for each in results
        if each.evidence.ok is ok and (not ok or each.evidence.truncated)
    ]


def _line(turn_id: TurnId, result: Source) -> Block:
    evidence = result.evidence
    asked = span(result.arguments)
    asked = "" if asked in evidence.summary else asked
    told = remark(" · ".join(filter(None, (result.name, evidence.summary, asked))), _LINE_CHARS)
    cut = "cut · " if evidence.truncated else ""
    line = f"*E{result.number}* {result.mark}{told} · {cut}{duration(evidence.latency_ms)}"
    opening = button(
        "Open",
        f"{OPEN_ACTION}:{result.number}",
        _value(turn_id, result),
        spoken=f"Open E{result.number}: {result.name}",
    )
    return section(line) | {"accessory": opening}


def _menu(turn_id: TurnId, results: Sequence[Source]) -> Block:
    offered = results[:MAX_OPENABLE]
    options = [Option(_option(each), _value(turn_id, each)) for each in offered]
    return select("Open any result…", SELECT_ACTION, options)


def _option(result: Source) -> str:
    """`E12 compare_to_baseline cart · within baseline`; long metric names give way first."""
    head, found = f"E{result.number} {result.mark}{result.name}", result.evidence.summary
    whole = " · ".join(filter(None, (head, found)))
    if len(whole) > OPTION_TEXT_CHARS:
        whole = " · ".join(filter(None, (head, _LONG_NAME.sub(r"\1_…_\2", found))))
    return plain(whole, OPTION_TEXT_CHARS)


def _value(turn_id: TurnId, result: Source) -> str:
    return f"{turn_id}|{result.number}"


RAW_ACTION = "evidence:raw"
LINK_ACTION = "evidence:link"
_MOST_CHARTS = 6
_ASKED_CHARS = 2_500


def opened_view(
    evidence: Evidence,
    arguments: Mapping[str, JsonValue],
    templates: Mapping[str, str],
    value: str,
    metadata: str = "",
) -> View:
    """The modal. `value` comes back with the press that asks for the JSON, `metadata` with its view.

    `templates` are links by family of signals, of the operators' own.
    """
    pictures = [plotted(each) for each in charts_of(evidence, arguments)[:_MOST_CHARTS]]
    table = table_of(evidence)
    if table is not None and not pictures:
        pictures.append(laid_out(table))
    blocks: list[JsonValue] = [paragraph(headline(evidence))]
    for picture in filter(None, pictures):
        blocks += [preformatted(part) for part in fitting_parts(visible(picture))]
    blocks += _asked(evidence, arguments)
    buttons = _buttons(evidence, arguments, templates, value, with_raw=bool(pictures))
    if buttons:
        blocks.append(actions(buttons))
    if not pictures:
        held = evidence_view(evidence)["blocks"]
        blocks += held[1:] if isinstance(held, list) else []
    return view_of(f"Result E{evidence.number}", blocks) | {"private_metadata": metadata}


def _asked(evidence: Evidence, arguments: Mapping[str, JsonValue]) -> list[JsonValue]:
    asked, window = query_of(arguments), window_of(evidence)
    blocks: list[JsonValue] = []
    if asked:
        blocks += [paragraph("Asked"), preformatted(visible(asked)[:_ASKED_CHARS])]
    if window:
        blocks.append(paragraph(f"From {_moment(window[0])} to {_moment(window[1])} UTC"))
    return blocks


def _moment(at: datetime) -> str:
    return f"{at:%d %b %Y %H:%M:%S}"


def _buttons(
    evidence: Evidence,
    arguments: Mapping[str, JsonValue],
    templates: Mapping[str, str],
    value: str,
    *,
    with_raw: bool,
) -> list[Block]:
    made = []
    url = link_of(evidence, arguments, templates)
    if url and len(url) <= BUTTON_URL_CHARS:
        made.append(button("Open where it was measured", LINK_ACTION, value) | {"url": url})
    if with_raw:
        made.append(button("Raw JSON", RAW_ACTION, value))
    return made
