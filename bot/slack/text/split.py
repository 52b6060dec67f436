"""Long Markdown cut into messages: at paragraphs, else lines, else words; nothing lost.

A code fence that is cut is closed at the end of its message and opened again in the next.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.slack.text.limits import PART_BYTES
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import CLOSE, Line, lines, safe_line
from bot.slack.text.mrkdwn import clean

# Room for a reopened fence (at most 24 bytes and a newline) and its closing line.
FENCE_BYTES = 32
_LAST_SPACE = re.compile(r"\s(?=\S*$)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One message's worth. `source` is the text it was made from; the sources add up to the text."""

    source: str
    safe: str


def split(text: str, policy: LinkPolicy, max_bytes: int = PART_BYTES) -> list[Piece]:
    """Pieces with `safe` texts of at most `max_bytes` of UTF-8 (at least 64); empty for no text."""
    budget = max_bytes - FENCE_BYTES
    packed: list[list[Line]] = []
    current: list[Line] = []
    used = 0
    for line in _fitting(text, policy, budget):
        size = _bytes(line.safe) + 1
        if current and used + size > budget:
            kept, current = _cut(current)
            packed.append(kept)
            used = sum(_bytes(each.safe) + 1 for each in current)
            if current and used + size > budget:
                packed.append(current)
                current, used = [], 0
        current.append(line)
        used += size
    if current:
        packed.append(current)
    return [_piece(each) for each in packed]


def _fitting(text: str, policy: LinkPolicy, budget: int) -> Iterator[Line]:
    for line in lines(clean(text), policy):
        if _bytes(line.safe) + 1 <= budget:
            yield line
        else:
            yield from _fragments(line, policy, budget)


def _fragments(line: Line, policy: LinkPolicy, budget: int) -> Iterator[Line]:
    rest = line.source
    fenced = bool(line.within)
    while rest:
        size = _prefix(rest, policy, budget, fenced=fenced)
        source, rest = rest[:size], rest[size:]
        safe = safe_line(source.removesuffix("\n"), policy, fenced=fenced)
        yield Line(source, safe, line.within, line.after)


def _prefix(text: str, policy: LinkPolicy, budget: int, *, fenced: bool) -> int:
    def fits(size: int) -> bool:
        safe = safe_line(text[:size].removesuffix("\n"), policy, fenced=fenced)
        return _bytes(safe) + 1 <= budget

    low, high = 1, min(len(text), budget)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low < len(text) and (space := _LAST_SPACE.search(text[:low])) and space.end() > low // 2:
        low = space.end()
    while low > 1 and not fits(low):
        low -= 1
    return low


def _cut(full: list[Line]) -> tuple[list[Line], list[Line]]:
    for index in range(len(full) - 1, len(full) // 2, -1):
        line = full[index]
        if not line.after and not line.source.strip():
            return full[: index + 1], full[index + 1 :]
    return full, []


def _piece(packed: list[Line]) -> Piece:
    opening = [packed[0].within] if packed[0].within else []
    closing = [CLOSE] if packed[-1].after else []
    source = "".join(line.source for line in packed)
    return Piece(source, "\n".join([*opening, *(line.safe for line in packed), *closing]))


def _bytes(text: str) -> int:
    return len(text.encode())
