"""A token of which one half stands at the end of a line and the other on the next one."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from bot.privacy.lists import read_list
from bot.privacy.looks import random
from bot.privacy.matching import finder

MOST_FOUND: Final = 500
_NEXT_LINE_CHARS: Final = 240
_SHORTEST_HALF: Final = 4
_SHORTEST_OPEN_HALF: Final = 8
_HALF: Final = rb"((?:%s)[A-Za-z0-9_.-]{0,120})[\"'\\+}\] ]{0,4}\r?\n"
_WORD = re.compile(rb"[A-Za-z0-9_.-]+")
_CONTINUED = re.compile(rb"[ \t\"'+]{0,16}(?![0-9]{4}-)([A-Za-z0-9_.-]{8,200})")


class Halves:
    """Joins them by the lengths that vendors publish (`lists.toml`); 0 is a vendor's without one."""

    def __init__(self) -> None:
        lengths = dict(read_list("token_lengths"))
        self.pattern = _HALF % b"|".join(re.escape(lead.encode()) for lead in lengths)
        self._find = finder(self.pattern)
        self._lengths = {lead.encode(): int(length) for lead, length in lengths.items()}

    def joined(self, data: bytes) -> Iterator[tuple[Sequence[tuple[int, int]], bytes]]:
        """Where both halves stand, and the token they make."""
        at = 0
        for _ in range(MOST_FOUND):
            (_, line), (start, end), *_ = self._find(data, at, len(data))
            if start < 0:
                return
            at = line
            half = data[start:end]
            other = self._other(half, data[line : line + _NEXT_LINE_CHARS].partition(b"\n")[0])
            if other is not None:
                first, last = line + other[0], line + other[1]
                yield [(start, end), (first, last)], half + data[first:last]

    def _other(self, half: bytes, line: bytes) -> tuple[int, int] | None:
        length = next(n for lead, n in self._lengths.items() if half.startswith(lead))
        if not length:
            found = _CONTINUED.match(line)
            return found.span(1) if found and random("", found[1].decode()) else None
        missing = length - len(half)
        if missing < _SHORTEST_HALF:
            return None
        fits = (w.span() for w in _WORD.finditer(line) if len(w[0]) == missing)
        return next((s for s in fits if random("", (half + line[s[0] : s[1]]).decode())), None)
