"""What of a model's answer fits a phone's screen: the headline and at most five lines of evidence.

Pure, over the answer's Markdown. Tables, long code and what follows are left out: they are behind
*Evidence*. A sentence that a check doubts keeps its mark, also where it is cut.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from bot.domain.budget import NO_MODEL
from bot.domain.claims import SENTENCE_END, ClaimState
from bot.domain.markdown_blocks import (
    CODE_MARK,
    HEADING,
    ITEM,
    OPEN_LINK,
    Block,
    Kind,
    blocks,
    rows_of,
)
from bot.domain.turn_events import TurnFinished

MOST_LINES: Final = 5
_ROWS: Final = 16  # of 25 that a phone shows in portrait; the rest are for the footer and buttons
_HEADLINE_ROWS: Final = 6
_LINE_ROWS: Final = 4
_COLUMNS: Final = 45
_LABEL_CHARS: Final = 80  # a longer heading is a statement

_CODE_SPAN: Final = re.compile(r"`[^`\n]+`")
_MARK: Final = " (⚠ "
_AFTER_MARK: Final = re.compile(r"\(⚠ [^\n]*?\)\s+")
_CITED_OR_ENDED: Final = re.compile(r"\[E\d|[.!?。！？؟।][*_]*$")
# Of other scripts; only in a text without marks, each of which is for all that stands before it.
_OTHER_END: Final = re.compile(r"[。！？।؟]|[.!?]\s+(?=[^\x00-\x7f])")
_BEGINNING: Final = re.compile(r"[ \t]*(?:#{1,6}|[-*+>•]|`{1,2}|~{1,2}|\d{1,3}[.)]?)?[ \t]*$")


@dataclass(frozen=True, slots=True)
class Screen:
    """Markdown; how many lines of the answer it leaves out, and how many marks of a doubt in them."""

    text: str
    more: int = 0
    doubts: int = 0


def screen_of(final: TurnFinished) -> Screen:
    """Of a finished answer; first to go is what was said before the last result was read."""
    if final.provider in ("", NO_MODEL):  # they answer in words that fit already
        return Screen(final.text)
    whole = phone_screen(final.text)
    if not whole.more or not final.narration:
        return whole
    concluded = final.text.removeprefix(final.narration)
    screen = phone_screen(concluded)
    before = final.text[: len(final.text) - len(concluded)]
    more = screen.more + _count(before)
    return Screen(screen.text, more, screen.doubts + _doubts(before))


def whole_of(final: TurnFinished) -> str:
    """All of an answer that does not fit, with the states of its statements; else empty."""
    return with_states(final) if screen_of(final).more else ""


def with_states(final: TurnFinished) -> str:
    """The text, and how many of its statements are in each state."""
    states = [claim.state for claim in final.claims]
    words = {
        ClaimState.SUPPORTED: "supported",
        ClaimState.CONTRADICTED: "contradicted",
        ClaimState.UNCHECKED: "not checked",
    }
    told = [f"{states.count(each)} {word}" for each, word in words.items() if each in states]
    return "\n\n".join([final.text, *([f"Statements: {', '.join(told)}."] if told else [])])


def growing_screen(text: str, provider: str) -> Screen:
    """Of the text that a provider has written so far; later ones and the last begin with it."""
    if provider == NO_MODEL:
        return Screen(text)
    return phone_screen(text, is_final=False)


def phone_screen(text: str, *, is_final: bool = True) -> Screen:
    """The screen of that text. While it grows (`is_final` false), later screens begin with it."""
    if not is_final and _BEGINNING.match(text, text.rfind("\n") + 1):
        text = text[: text.rfind("\n") + 1]  # what this line becomes is not known yet
    made = _Made(text, is_final)
    taken = []
    for block in blocks(text):
        taken.append(block)
        made.take(block)
        if made.is_full and not is_final:
            break  # while it grows, people see only that there is more
    made.end(taken)
    shown = made.shown or (text if is_final else "")
    return Screen(shown, made.more, max(0, _doubts(text) - _doubts(shown)))


class _Made:
    """The screen as it is put together, block by block, from the beginning."""

    def __init__(self, text: str, is_final: bool) -> None:
        self._text = text
        self._is_final = is_final
        self.shown = ""
        self.more = 0
        self._lines = -1  # of evidence; the headline is none
        self._rows = 0
        self._heading: Block | None = None
        self._last: Block | None = None  # the end of what is shown
        self.is_full = False

    def take(self, block: Block) -> None:
        match block.kind:
            case Kind.RULE:
                return
            case Kind.HEADING:
                self._leave_out(self._heading)
                self._heading = block
                if _is_statement(self._words(block)) and not self.shown:
                    self._show_headline("", block)
            case Kind.TABLE:
                self._leave_out(block)
            case Kind.CODE:
                self._take_code(block)
            case Kind.PROSE | Kind.ITEM:
                self._take_prose(block)

    def end(self, found: Sequence[Block]) -> None:
        if not self.shown and self._is_final:
            self._take_without_prose(found)
        else:
            self._leave_out(self._heading)

    def _take_without_prose(self, found: Sequence[Block]) -> None:
        """Its first rows or lines, where an answer is nothing but a table or code."""
        self.more = 0
        title = self._words(self._heading) if self._heading else ""
        block = next((each for each in found if each.kind in (Kind.TABLE, Kind.CODE)), None)
        rows = rows_of(self._text, block) if block else []
        if block is None or not rows:
            return
        if block.kind is Kind.TABLE:
            title, rows = title or " · ".join(rows[0]), rows[1:]
            told = "\n".join(
                _cut(f"- {' · '.join(row)}", _LINE_ROWS // 2) for row in rows[:MOST_LINES]
            )
        else:
            title = title or f"{len(rows)} line{'' if len(rows) == 1 else 's'} of code"
            told = "\n".join(["```", *(line for (line,) in rows[:MOST_LINES]), "```"])
        self.shown = f"**{title.replace('**', '')}**\n\n{told}"
        self.more = max(0, len(rows) - MOST_LINES)
        for other in found:
            if other.kind in (Kind.TABLE, Kind.CODE) and other is not block:
                self._leave_out(other)

    def _take_code(self, block: Block) -> None:
        count = self._text.count("\n", block.start, block.end) - 1
        room = min(MOST_LINES - self._lines, _ROWS - self._rows - 1)
        whole = self._text[block.start : block.end]
        fits = count <= room and _rows(whole) <= _ROWS - self._rows
        if self.is_full or not self.shown or block.is_open or not fits:
            self._leave_out(block)
            return
        self._put(block, whole, max(1, count))

    def _take_prose(self, block: Block) -> None:
        ends = _sentences(self._text[block.start : block.end])
        spans = [
            Block(block.kind, block.start + a, block.start + b) for a, b in pairwise([0, *ends])
        ]
        if not self.shown:
            self._show_headline(self._words(self._heading) if self._heading else "", spans.pop(0))
        elif block.kind is Kind.ITEM:
            self._show_line(block, spans)
            return
        for span in spans:
            self._show_line(span, [span])

    def _show_headline(self, label: str, span: Block) -> None:
        told = self._words(span)
        if label:
            told = f"**{label.rstrip(':').replace('**', '')}:** {told}"
        self._heading = None
        self._put(span, _cut(told, _HEADLINE_ROWS, grows=self._grows(span)), 1)
        if _rows(told) > _HEADLINE_ROWS:
            self.more += 1

    def _show_line(self, block: Block, spans: Sequence[Block]) -> None:
        """One line of evidence: as many of its sentences as there is room for."""
        above = 2 if self._heading else 0
        room = min(_LINE_ROWS, _ROWS - self._rows - above)
        if self.is_full or self._lines >= MOST_LINES or room < 1:
            self.is_full = True
            self._leave_out(block)
            return
        told = ""
        for span in spans:
            sentence = self._text[span.start : span.end]
            if _rows((told + sentence).rstrip()) <= room:
                told += sentence
                continue
            left = room + 1 - _rows(told) if told else room
            told += _cut(sentence, left) if left else ""
            self.more += 1
            break
        if self._grows(block):
            told = _cut(told, room, grows=True)
        self._put(block, told.rstrip(), 1)

    def _grows(self, block: Block) -> bool:
        return not self._is_final and not self._text[block.end :].strip()

    def _put(self, block: Block, told: str, lines: int) -> None:
        heading, self._heading = self._heading, None
        if heading is not None:
            self._join(heading, self._text[heading.start : heading.end].rstrip())
        self._join(block, told)
        self._lines += lines
        self._rows = _rows(self.shown)

    def _join(self, block: Block, told: str) -> None:
        between = self._text[self._last.end : block.start] if self._last else ""
        if self._last and between.strip():
            same = block.kind is Kind.ITEM and self._last.kind is Kind.ITEM
            between = "\n" if same else "\n\n"
        elif "\n" in between:
            between = between.lstrip(" \t")
        self.shown += between + told
        self._last = Block(
            block.kind, block.start, block.start + len(self._text[block.start : block.end].rstrip())
        )

    def _leave_out(self, block: Block | None) -> None:
        if block is not None:
            self.more += _count(self._text[block.start : block.end])

    def _words(self, block: Block) -> str:
        """Its text without the marks of a heading or an item."""
        told = self._text[block.start : block.end].strip()
        marked = HEADING.match(told) or ITEM.match(told)
        return told[marked.end() :].rstrip("#").rstrip() if marked else told


def _sentences(text: str) -> list[int]:
    """Where each sentence ends, with the space behind it and the mark that a check put there."""
    masked = _CODE_SPAN.sub(lambda span: "`" * len(span[0]), text)
    ends = {found.end() for found in SENTENCE_END.finditer(masked)}
    kept = [end for end in ends if not text.startswith(_MARK[1:], end)]
    kept += [found.end() for found in _AFTER_MARK.finditer(masked)]
    if _MARK not in text:
        kept += [found.end() for found in _OTHER_END.finditer(masked)]
    return sorted({*kept, len(text)} - {0})


def _is_statement(heading: str) -> bool:
    return len(heading) > _LABEL_CHARS or _CITED_OR_ENDED.search(heading) is not None


def _cut(told: str, rows: int, *, grows: bool = False) -> str:
    """As much as fits, with the mark of a doubt at its end; of what still grows only what stays."""
    told = told.rstrip()
    fits = _rows(told) <= rows
    if fits and not (grows and _rows(told + " " * _COLUMNS) > rows):
        return told
    body, sign, note = told.rpartition(_MARK)
    mark = sign + note if sign and note.endswith(")") else ""
    body = (body if mark else told)[: 4 * rows * _COLUMNS]
    room = max(1, rows - (_rows(mark) if mark else 0))
    size = bisect_right(range(len(body)), room, key=lambda n: _rows(body[:n] + "…"))
    kept = body[: max(1, size - 1)]
    space = kept.rfind(" ")
    kept = kept[:space] if space > len(kept) // 2 else kept
    kept = OPEN_LINK.sub("", kept)
    if kept.count("`") % 2:
        kept = kept[: kept.rfind("`")]
    if fits:
        return kept.rstrip()
    closing = "".join(sign for sign in ("**", "~~") if kept.count(sign) % 2)
    return f"{kept.rstrip()}…{closing}{mark}"


def _rows(text: str) -> int:
    return sum(max(1, -(-_columns(line) // _COLUMNS)) for line in text.split("\n"))


def _columns(line: str) -> int:
    if line.isascii():
        return len(line)
    return sum(map(_width, line))


@lru_cache(maxsize=4096)
def _width(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _count(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip())


def _doubts(text: str) -> int:
    return text.count(_MARK) + text.count(f"\n{CODE_MARK}")
