"""Matching with RE2, in linear time."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import re2

# As of `re`; a group that took no part has the span (-1, -1).
Match = re.Match[bytes]
# The first match between two positions.
Find = Callable[[bytes, int, int], Match | None]
# The numbers of the patterns that may match a text.
Filter = Callable[[bytes], Sequence[int]]

# RE2's filter looks for no shorter literal (FilteredRE2's least atom, as the bindings set it).
_ATOM_BYTES: Final = 3

MATCHER_BYTES: Final = (
    64 << 20
)  # RE2's default of 8 MiB makes it rebuild its automaton over and over


def compiled(pattern: bytes) -> Any:
    """With `finditer` and `groupindex`. Raises re2.error."""
    return re2.compile(pattern, _options())


def groups(pattern: bytes) -> dict[str, int]:
    return {name.decode(): number for name, number in compiled(pattern).groupindex.items()}


def forget() -> None:
    """Clear the cache of RE2's bindings, which holds megabytes after the rules are read."""
    re2.purge()


@cache
def finder(pattern: bytes) -> Find:
    """Compiled the first time and kept. Raises re2.error."""
    find: Find = compiled(pattern).search
    return find


def literal_filter(literals: Sequence[Sequence[str]]) -> Filter:
    """Filter entries of lower-case literals: those with a literal in the text pass.

    RE2's filter ignores literals shorter than three bytes, so those are searched for directly.
    """
    short = {n for n, each in enumerate(literals) if _is_short(each)}
    signs: dict[bytes, set[int]] = {}
    for n in short:
        for one in literals[n]:
            signs.setdefault(one.encode(), set()).add(n)
    long = [n for n in range(len(literals)) if n not in short]
    made = _filter([_any_of(literals[n]) for n in long])

    def matching(text: bytes) -> Sequence[int]:
        found = {long[n] for n in made.Match(text, True) or ()}
        for sign, entries in signs.items():
            if sign in text:
                found |= entries
        return sorted(found)

    return matching


def _is_short(literals: Sequence[str]) -> bool:
    """Whether RE2's filter ignores it. Letters have two cases, so the filter keeps them."""
    caseless = all(not one.isalpha() for each in literals for one in each)
    return caseless and min(map(len, literals)) < _ATOM_BYTES


def pattern_filter(patterns: Sequence[bytes]) -> Filter:
    """A filter of patterns: only matching ones pass."""
    made = _filter(patterns)
    return lambda text: made.Match(text, False) or ()


def _filter(patterns: Sequence[bytes]) -> Any:
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
    return b"(?i)" + b"|".join(re.escape(each.encode()) for each in literals)
