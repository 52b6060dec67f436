"""What commands print: tables and answers by rich in a terminal, plain lines in a pipe, JSON as it is."""

import html
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from tools.output import clean_text, json_bytes, lines_of

_ENTITY: Final = re.compile(r"&#?\w{1,32};")
_CODE: Final = re.compile(
    r"(^[ \t>]*(?:```|~~~)[\s\S]*?(?:^[ \t>]*(?:```|~~~)|\Z)|(`+)(?!`)[^\n]+?(?<!`)\2(?!`))",
    re.MULTILINE,
)
# Markdown drops tags, the addresses of images, and where an unused reference leads.
_DROPPED: Final = re.compile(r"<|!(?=\[)|\[(?=[^\]\n]*\]:)")
_MARKS: Final = re.compile(r"(```|`|\*\*|\n)")
_CUT: Final = re.compile(r"(?<!\*)\*\Z|(?<!`)`{1,2}\Z")  # a mark that the next piece may complete
_STYLES: Final[Mapping[str, str]] = {
    "ok": "green",
    "FAILED": "bold red",
    "WARNING": "yellow",
    "BAD": "bold red",
    "!!": "yellow",
    "--": "dim",
    "not set": "dim",
}


def print_json(value: JsonValue) -> None:
    sys.stdout.write(json_bytes(value, orjson.OPT_INDENT_2).decode() + "\n")


def print_json_line(value: JsonValue) -> None:
    sys.stdout.write(json_bytes(value).decode() + "\n")


def print_rows(rows: Sequence[Sequence[str]], headings: Sequence[str] = ()) -> None:
    """Print aligned columns; the last column may have several lines.

    A terminal gets colours for a mark in the first column and wrapped lines. A pipe gets the lines as
    they are.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        for line in aligned([headings, *rows] if headings else rows):
            print(line)
        return
    table = Table(box=None, pad_edge=False, show_header=bool(headings), header_style="bold")
    columns = max(map(len, rows), default=0)
    for at in range(columns):
        heading = headings[at] if headings else ""
        is_last = at == columns - 1
        table.add_column(heading, no_wrap=not is_last, overflow="fold" if is_last else "ellipsis")
    for row in rows:
        mark, *cells = row
        table.add_row(
            Text(mark, _STYLES.get(mark.strip(), "")), *(Text(clean_text(cell)) for cell in cells)
        )
    console.print(table)


def aligned(rows: Sequence[Sequence[str]]) -> Sequence[str]:
    """Lines of columns; the last column may have several lines."""
    columns = max(map(len, rows), default=0)
    widths = [max(len(row[at]) for row in rows) for at in range(columns - 1)]
    lines = []
    for *cells, last in rows:
        first, *more = lines_of(last) or [""]
        padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]
        lines.append("  ".join([*padded, first]).rstrip())
        indent = " " * (sum(widths) + 2 * len(widths))
        lines += [f"{indent}{line}" for line in more]
    return lines


@dataclass(slots=True)
class Markup:
    """Markdown that may come in pieces, as text without `**`."""

    _held: str = ""  # perhaps the first part of a mark
    _bold: bool = False
    _code: bool = False
    _fence: bool = False

    def rendered(self, text: str, bold: str = "", plain: str = "") -> str:
        text = self._held + text
        cut = _CUT.search(text)
        self._held = cut[0] if cut else ""
        pieces = _MARKS.split(text[: cut.start()] if cut else text)
        return "".join(self._piece(each, bold, plain) for each in pieces)

    def _piece(self, piece: str, bold: str, plain: str) -> str:
        match piece:
            case "```":
                self._fence = not self._fence
            case "`":
                self._code = not self._code
            case "\n":
                ends, self._bold, self._code = self._bold, False, False
                return f"{plain}\n" if ends else "\n"
            case "**" if not self._code and not self._fence:
                self._bold = not self._bold
                return bold if self._bold else plain
            case _:
                pass
        return piece


def _visible_entity(found: re.Match[str]) -> str:
    return found[0] if clean_text(html.unescape(found[0])) else ""


def _with_tags(text: str) -> str:
    shown, at = "", 0
    for code in _CODE.finditer(text):
        shown += _DROPPED.sub(r"\\\g<0>", text[at : code.start()]) + code[0]
        at = code.end()
    return shown + _DROPPED.sub(r"\\\g<0>", text[at:])


def print_answer(text: str) -> None:
    """Print an answer's Markdown: formatted in a terminal, without `**` in a pipe.

    A link is shown with its address, so that its words cannot hide where it leads.
    """
    console = Console(highlight=False, theme=Theme({"markdown.code": "cyan"}))
    if not console.is_terminal:
        print(Markup().rendered(f"{clean_text(text)}\n"), end="")
        return
    from rich.markdown import Markdown  # a tenth of a second, for answers only

    inert = _ENTITY.sub(_visible_entity, clean_text(text))  # Markdown decodes entities later
    lines = _with_tags(inert).replace("\n", "  \n")  # Markdown joins lines without the two blanks
    console.print(Markdown(lines, hyperlinks=False))
