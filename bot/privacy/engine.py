"""The matcher under the rules: RE2, whose time is linear; where it has no wheel, Python's own `re`.

`NAME` says which one runs. This is the one place that knows; the standard library's is made safe in
`bot.privacy.engine_stdlib`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from bot.privacy import engine_stdlib

try:
    import re2
except ImportError:  # no wheel for this platform
    re2 = None

# A match's span and its groups'; (-1, -1) is none.
Spans = Sequence[tuple[int, int]]
# The first match between two positions.
Find = Callable[[bytes, int, int], Spans]
# The numbers of the patterns that may match a text.
Filter = Callable[[bytes], Sequence[int]]

MATCHER_BYTES: Final = (
    64 << 20
)  # RE2's default of 8 MiB makes it rebuild its automaton over and over


class Re2Engine:
    """Linear in the text, whatever it holds."""

    name: Final = "RE2"
    max_text_bytes: int | None = None
    max_s: float | None = None

    def compile(self, pattern: bytes) -> Any:
        """With `finditer` and `groupindex`. Raises re2.error."""
        return re2.compile(pattern, _options())

    def groups(self, pattern: bytes) -> dict[str, int]:
        """The numbers of the named groups."""
        return {n.decode(): number for n, number in self.compile(pattern).groupindex.items()}

    def finder(self, pattern: bytes, *, spans_lines: bool = False) -> Find:
        """One call of the engine a match: the objects re2's own `search` makes cost more than it."""
        del spans_lines
        compiled = self.compile(pattern)
        return partial(compiled._regexp.Match, re2._Anchor.UNANCHORED)  # noqa: SLF001

    def literal_filter(self, literals: Sequence[Sequence[str]]) -> Filter:
        """Of entries of lower-case literals, those of which one stands in the text."""
        made = self._filter([_any_of(each) for each in literals])
        return lambda text: made.Match(text, True) or ()

    def pattern_filter(self, patterns: Sequence[bytes]) -> Filter:
        """Of patterns, those that match."""
        made = self._filter(patterns)
        return lambda text: made.Match(text, False) or ()

    def _filter(self, patterns: Sequence[bytes]) -> Any:
        made = re2.Filter()
        for pattern in patterns:
            made.Add(pattern, _options())
        made.Compile()
        return made


def _options() -> Any:
    """Bytes in, bytes out: positions need no translation."""
    chosen = re2.Options()
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.max_mem = MATCHER_BYTES
    chosen.log_errors = False
    return chosen


def _any_of(literals: Sequence[str]) -> bytes:
    return b"(?i)" + b"|".join(engine_stdlib.escaped(each.encode()) for each in literals)


Engine = Re2Engine | engine_stdlib.StdlibEngine
ENGINE: Final[Engine] = Re2Engine() if re2 is not None else engine_stdlib.StdlibEngine()
