"""A Markdown text as blocks: paragraphs, items, headings, tables and code, by their offsets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(r"[ \t]{0,20}(`{3,}|~{3,})")
_RULE: Final = re.compile(r"[ \t]*(?:([-*_=])[ \t]*)(?:\1[ \t]*){2,}$|=+[ \t]*$")
_TABLE_RULE: Final = re.compile(r"(?=[^\n]*\|)[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")  # fmt: skip
HEADING: Final = re.compile(r"[ ]{0,3}#{1,6}[ \t]+(?=\S)")
ITEM: Final = re.compile(r"[ \t]{0,40}(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+(?=\S)")
CODE_MARK: Final = "⚠ "
# At the end of a text: it may become a link.
OPEN_LINK: Final = re.compile(r"!?\[[^\]\n]*(?:\](?:\([^)\n]*)?)?$")
_CODE_OR_BOLD: Final = re.compile(
    r"(```.*?(?:```|\Z)|`[^`\n]*`)|\*\*(?=\S)((?:`[^`\n]*`|[^`\n])+?)(?<=\S)\*\*(?!\*)", re.DOTALL
)


class Kind(Enum):
    PROSE = auto()
    ITEM = auto()
    HEADING = auto()
    CODE = auto()
    TABLE = auto()
    RULE = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text, by its offsets. `is_open`: code whose end is not there yet."""

    kind: Kind
    start: int
    end: int
    is_open: bool = False


def blocks(text: str) -> Iterator[Block]:
    """The text's paragraphs, items, headings, tables and code, in order; blank lines are in none."""
    lines = [(found.start(), found.group()) for found in _LINE.finditer(text)]
    at = 0
    while at < len(lines):
        start, line = lines[at]
        if not line.strip():
            at += 1
            continue
        kind = _kind(lines, at)
        end, is_open = at + 1, False
        if kind is Kind.CODE:
            end, is_open = _end_of_code(lines, at)
        elif kind is Kind.TABLE:
            while end < len(lines) and "|" in lines[end][1]:
                end += 1
        elif kind in (Kind.PROSE, Kind.ITEM):
            while end < len(lines) and lines[end][1].strip() and _kind(lines, end) is Kind.PROSE:
                end += 1
        last_start, last = lines[end - 1]
        yield Block(kind, start, last_start + len(last.rstrip("\n")), is_open)
        at = end


def without_bold(text: str) -> str:
    """The text without the `**` of bold words, for a reader that shows signs as they are."""
    return _CODE_OR_BOLD.sub(lambda found: found[1] or found[2], text)


def rows_of(text: str, block: Block) -> list[tuple[str, ...]]:
    """The cells of a table's rows, its heads first; or the lines of code."""
    lines = text[block.start : block.end].split("\n")
    if block.kind is Kind.CODE:
        closed = lines[1:-1] if len(lines) > 1 and not block.is_open else lines[1:]
        return [(line,) for line in closed if not _FENCE.match(line)]
    told = [
        line.strip().removeprefix("|").removesuffix("|")
        for line in lines
        if not _TABLE_RULE.match(line)
    ]
    return [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)) for line in told]


def _kind(lines: Sequence[tuple[int, str]], at: int) -> Kind:
    line = lines[at][1].rstrip("\n")
    if _FENCE.match(line):
        return Kind.CODE
    if line.lstrip().startswith("|"):
        return Kind.TABLE
    if "|" in line and at + 1 < len(lines) and _TABLE_RULE.match(lines[at + 1][1].rstrip("\n")):
        return Kind.TABLE
    if _RULE.match(line):
        return Kind.RULE
    if HEADING.match(line):
        return Kind.HEADING
    return Kind.ITEM if ITEM.match(line) else Kind.PROSE


def _end_of_code(lines: Sequence[tuple[int, str]], at: int) -> tuple[int, bool]:
    found = _FENCE.match(lines[at][1])
    fence = found[1] if found else ""
    for end in range(at + 1, len(lines)):
        line = lines[end][1].strip()
        if line.startswith(fence) and not line.strip(fence[0]):
            is_marked = end + 1 < len(lines) and lines[end + 1][1].startswith(CODE_MARK)
            return end + 1 + is_marked, False
    return len(lines), True
