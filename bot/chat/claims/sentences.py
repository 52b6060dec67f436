"""An answer as sentences, each with the results it cites or inherits.

Blocks are paragraphs, bullets, table rows and fences; a sentence never crosses one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.domain.citations import CITATION, cited

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BULLET = re.compile(r"^([ \t]{0,20})(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+")
_FENCE = re.compile(r"^[ \t]{0,20}(```|~~~)")
_QUOTE = re.compile(r"^[ \t]{0,3}>[ \t]?")
# A sentence ends with its mark, what closes it, and a citation that stands behind the mark.
_END = re.compile(
    r"[.!?][\"')*_]{0,4}(?:[ \t]{0,3}\[E\d{1,4}(?:, ?E\d{1,4}){0,9}\]){0,9}\s+(?=[A-Z`*\"(])"
    r"|\][;.]\s+"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """`start` and `end` are offsets in the answer, without white space around.

    `cites` are its own; `inherits` the nearest of its block, empty where it has its own or there
    are none. `mark_at` is where a mark goes.
    """

    text: str
    start: int
    end: int
    mark_at: int
    cites: tuple[int, ...]
    inherits: tuple[int, ...] = ()
    code: bool = False

    @property
    def evidence(self) -> tuple[int, ...]:
        """The results it is checked against; empty: it names none."""
        return self.cites or self.inherits

    @property
    def words(self) -> str:
        """Its text without citations."""
        return CITATION.sub(" ", self.text)


@dataclass(slots=True)
class _Block:
    start: int
    end: int
    indent: int = -1
    code: bool = False
    table: bool = False


def sentences(text: str) -> list[Sentence]:
    """All sentences in reading order."""
    found: list[Sentence] = []
    parents: list[tuple[int, tuple[int, ...]]] = []
    last: tuple[int, ...] = ()
    for block in _blocks(text):
        own = list(_cut(text, block))
        while parents and parents[-1][0] >= block.indent:
            parents.pop()
        above = parents[-1][1] if parents and block.indent > 0 else ()
        found.extend(_inheriting(own, last if block.code else above))
        last = cited(text[block.start : block.end]) or (last if block.code else ())
        if block.indent >= 0:
            parents.append((block.indent, last or above))
    return found


def _blocks(text: str) -> Iterator[_Block]:
    """Runs of lines that belong together; fences without their first and last line."""
    open_block: _Block | None = None
    fence = ""
    for match in _LINE.finditer(text):
        line, start, end = match.group(), match.start(), match.end()
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark is not None and mark[1] == fence else fence
            if fence and line.strip():
                yield _Block(start, end, code=True)
            continue
        begins, indent, offset, alone = _line_kind(line)
        if open_block is not None and not (begins or mark or not line.strip()):
            open_block.end = end
            continue
        yield from filter(None, [open_block])
        open_block = None
        if mark is not None:
            fence = mark[1]
        elif line.strip():
            open_block = _Block(start + offset, end, indent, table=line.lstrip().startswith("|"))
            if alone:
                yield open_block
                open_block = None
    yield from filter(None, [open_block])


def _line_kind(line: str) -> tuple[bool, int, int, bool]:
    """Whether it begins a block, its bullet's indent (-1: none), its words' offset, if it is alone."""
    if bullet := _BULLET.match(line):
        return True, len(bullet[1].expandtabs(4)), bullet.end(), False
    if heading := _HEADING.match(line):
        return True, -1, heading.end(), True
    if line.lstrip().startswith("|"):
        return True, -1, 0, True
    quote = _QUOTE.match(line)
    return False, -1, quote.end() if quote else 0, False


def _cut(text: str, block: _Block) -> Iterator[Sentence]:
    """The sentences of one block."""
    body = text[block.start : block.end]
    cuts = [] if block.code or block.table else [m.end() for m in _END.finditer(body)]
    at = 0
    for cut in [*cuts, len(body)]:
        piece = body[at:cut]
        said = piece.strip()
        start = block.start + at + len(piece) - len(piece.lstrip())
        at = cut
        if not said:
            continue
        end = start + len(said)
        mark_at = end - 1 if block.table and said.endswith("|") and len(said) > 1 else end
        if block.code:
            mark_at = _fence_end(text, end)
        yield Sentence(said, start, end, mark_at, cited(said), code=block.code)


def _fence_end(text: str, at: int) -> int:
    """The end of the line that closes the fence around `at`."""
    ends = [found for mark in ("\n```", "\n~~~") if (found := text.find(mark, at)) >= 0]
    if not ends:
        return len(text)
    newline = text.find("\n", min(ends) + 1)
    return newline if newline >= 0 else len(text)


def _inheriting(own: Sequence[Sentence], above: tuple[int, ...]) -> Iterator[Sentence]:
    """Those without a citation get the nearest of the block; of two as near, both."""
    before = _distances(own)
    behind = list(reversed(_distances(list(reversed(own)))))
    for one, earlier, later in zip(own, before, behind, strict=True):
        if one.cites:
            yield one
            continue
        near = [each for each in (earlier, later) if each is not None]
        least = min((distance for distance, _ in near), default=0)
        found = [n for distance, cites in near if distance == least for n in cites]
        yield Sentence(
            one.text, one.start, one.end, one.mark_at, (),
            tuple(dict.fromkeys(found)) or above, one.code,
        )  # fmt: skip


def _distances(own: Sequence[Sentence]) -> list[tuple[int, tuple[int, ...]] | None]:
    """For each sentence the last citation before it, and how many sentences away it is."""
    found: list[tuple[int, tuple[int, ...]] | None] = []
    latest: tuple[int, tuple[int, ...]] | None = None
    for at, one in enumerate(own):
        found.append((at - latest[0], latest[1]) if latest else None)
        if one.cites:
            latest = (at, one.cites)
    return found
