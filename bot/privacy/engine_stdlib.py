"""Python's own `re` as the matcher: every quantifier is bounded, and a text has a size and a time.

It backtracks, so what RE2 does in linear time it may do in quadratic. Within a window that is little,
and what takes longer than allowed is refused, so that nothing of it leaves.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

# What a pattern begins with and still says nothing of the text: flags, a boundary, a group.
_NO_LITERAL: Final = re.compile(rb"\(\?i\)|\\b|\(\?P<\w>|\(\?:\\b\|[^()]*(?:\[[^\]]*\][^()]*)*\)")
_LITERAL: Final = re.compile(rb"(?:[A-Za-z0-9_:@/-]|\\[.$+:/-])+")
_QUANTIFIERS: Final = b"?*+{"
_SHORTEST_LITERAL: Final = 3
# A window of `bot.privacy.detector` with its overlap; a value that goes on is masked to its end there.
_MOST_GREEDY: Final = b"5120"
_MOST_LAZY: Final = b"256"
_MOST_OVER_LINES: Final = b"4000"
_TOKEN: Final = re.compile(
    rb"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<many>[*+]|\{(?P<least>\d+),\})(?P<lazy>\??)|(?s:.)"
)


class StdlibEngine:
    """Not linear, so texts are limited."""

    name: Final = "Python's re"
    max_text_bytes: int | None = 1 << 20
    max_s: float | None = 5.0

    def compile(self, pattern: bytes) -> Any:
        """With `finditer` and `groupindex`. Raises re.error."""
        return re.compile(pattern)

    def groups(self, pattern: bytes) -> dict[str, int]:
        """The numbers of the named groups."""
        return dict(re.compile(bounded(pattern)).groupindex)

    def finder(self, pattern: bytes, *, spans_lines: bool = False) -> "_Find":
        """The first match's span and its groups'."""
        return _Find(bounded(pattern, over_lines=spans_lines))

    def literal_filter(self, literals: Sequence[Sequence[str]]) -> Callable[[bytes], Sequence[int]]:
        """Of entries of lower-case literals, those of which one stands in the text."""
        wanted = [tuple(each.encode() for each in entry) for entry in literals]

        def possible(text: bytes) -> Sequence[int]:
            lower = text.lower()
            return [n for n, entry in enumerate(wanted) if any(each in lower for each in entry)]

        return possible

    def pattern_filter(self, patterns: Sequence[bytes]) -> Callable[[bytes], Sequence[int]]:
        """Of patterns, those whose literal beginning stands in the text, or that have none."""
        return self.literal_filter([(literal_of(p).decode().lower(),) for p in patterns])


class _Find:
    """A compiled pattern as the detector calls it."""

    __slots__ = ("_groups", "_search")

    def __init__(self, pattern: bytes) -> None:
        compiled = re.compile(pattern)
        self._search = compiled.search
        self._groups = range(compiled.groups + 1)

    def __call__(self, text: bytes, start: int, end: int) -> Sequence[tuple[int, int]]:
        found = self._search(text, start, end)
        return [(-1, -1)] if found is None else [found.span(group) for group in self._groups]


def bounded(pattern: bytes, *, over_lines: bool = False) -> bytes:
    """The pattern in Python's dialect, without a quantifier that has no end.

    Over lines, only what is lazy gets one: a key block may be long.
    """
    return b"".join(_bounded(pattern, over_lines=over_lines))


def _bounded(pattern: bytes, *, over_lines: bool) -> Iterator[bytes]:
    for token in _TOKEN.finditer(pattern):
        if token[0] == rb"\z":
            yield rb"\Z"
        elif token["many"] is None or (over_lines and not token["lazy"]):
            yield token[0]
        else:
            least = token["least"] or (b"1" if token["many"] == b"+" else b"0")
            most = _MOST_OVER_LINES if over_lines else _MOST_LAZY
            yield b"{%s,%s}" % (least, most if token["lazy"] else _MOST_GREEDY) + token["lazy"]


def literal_of(pattern: bytes) -> bytes:
    """What every match begins with, where the pattern says so plainly; else empty."""
    at = 0
    while skipped := _NO_LITERAL.match(pattern, at):
        at = skipped.end()
    found = _LITERAL.match(pattern, at)
    if found is None or _has_alternatives(pattern):
        return b""
    text = found[0]
    if pattern[found.end() : found.end() + 1] in [bytes([c]) for c in _QUANTIFIERS]:
        text = text[:-2] if text[-2:-1] == b"\\" else text[:-1]
    literal = text.replace(b"\\", b"")
    return literal if len(literal) >= _SHORTEST_LITERAL else b""


def _has_alternatives(pattern: bytes) -> bool:
    """Whether it is alternatives as a whole, or its main group is."""
    depth = 0
    for token in _TOKEN.finditer(_NO_LITERAL.sub(b"", pattern)):
        depth += {b"(": 1, b")": -1}.get(token[0], 0)
        if token[0] == b"|" and depth <= 0:
            return True
    return False


def escaped(literal: bytes) -> bytes:
    """The literal as both engines read it."""
    return re.escape(literal)
