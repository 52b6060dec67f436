"""Where in a text something must be masked: the rules over windows, in time linear in the text.

A prefilter tells per window which rules match at all; only those are run for positions.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import re2

from bot.privacy.rules import Kind, Rule, RuleSet, options, rule_set

# Large enough that the prefilter's call costs little, small enough that few rules match a window.
WINDOW_BYTES: Final = 4096
# What a rule needs to see of a secret and its surroundings to find it.
OVERLAP_BYTES: Final = 1024
# A window this full of one rule's findings is masked to its end: positions cost too much then.
MAX_FINDINGS: Final = 96
# What is found at a window's end goes on as long as it looks the same.
# As much of a value as tells what it is.
CHECKED_BYTES: Final = 256
_REST = re.compile(rb"[A-Za-z0-9+/=_.~%-]*")


class Span(NamedTuple):
    """Bytes `start` to `end`. Of overlapping spans the lowest `rank` gives the name."""

    start: int
    end: int
    rank: int
    name: str
    kind: Kind


@cache
def detector(*, pii: bool) -> "Detector":
    """The detector of all rules; without personal data when `pii` is false."""
    return Detector(rule_set(pii=pii))


class Detector:
    """Runs a rule set. Safe to share between threads."""

    def __init__(self, rules: RuleSet) -> None:
        self._documents = [*enumerate(rules.documents)]
        self._gated = [(n, r) for n, r in enumerate(rules.windowed) if r.gate]
        self._plain = [(n, r) for n, r in enumerate(rules.windowed) if not r.gate]
        self._gates = _prefilter([_any_of(r.gate) for _, r in self._gated])
        self._filter = _prefilter([r.pattern for _, r in self._plain])
        self._document_filter = _prefilter([r.pattern for r in rules.documents])

    def spans(self, data: bytes) -> list[Span]:
        """All findings, in no order, possibly overlapping."""
        search = _Search(data)
        size = len(data)
        for index in self._document_filter.Match(data, False) or ():
            search.run(self._documents[index], 0, size, size)
        for start in range(0, size, WINDOW_BYTES):
            stop = min(start + WINDOW_BYTES, size)
            end = min(stop + OVERLAP_BYTES, size)
            window = data if start == 0 and end == size else data[start:end]
            for index in self._gates.Match(window, True) or ():
                search.run(self._gated[index], start, stop, end)
            for index in self._filter.Match(window, False) or ():
                search.run(self._plain[index], start, stop, end)
        return search.found


class _Search:
    """One text under search."""

    def __init__(self, data: bytes) -> None:
        self.found: list[Span] = []
        self._data = data
        self._run = (0, 0)  # the last run of like characters, so that none is walked twice

    def run(self, ranked: tuple[int, Rule], start: int, stop: int, end: int) -> None:
        """Add what begins between `start` and `stop`, looked for up to `end`."""
        rank, rule = ranked
        data, search, group = self._data, rule.matcher.search, rule.group
        at, left = start, MAX_FINDINGS
        while (match := search(data, at, end)) is not None and match.start() < stop:
            first, last = match.span(group)
            at = max(last, at + 1)
            checked = data[first : min(last, first + CHECKED_BYTES)]
            if last <= first or not _holds(rule, match, checked):
                continue
            left -= 1
            if not left:
                self.found.append(Span(first, end, rank, rule.name, rule.kind))
                return
            whole = self._end(last) if last == end else last
            self.found.append(Span(first, whole, rank, rule.name, rule.kind))

    def _end(self, at: int) -> int:
        start, end = self._run
        if not start <= at <= end:
            rest = _REST.match(self._data, at)
            end = rest.end() if rest is not None else at
            self._run = (at, end)
        return end


def _holds(rule: Rule, match: Any, value: bytes) -> bool:
    if rule.check is None:
        return True
    name = match.group(rule.name_group).decode("latin-1") if rule.name_group else ""
    return rule.check(name, value.decode("latin-1"))


def _any_of(gate: Sequence[str]) -> bytes:
    return b"(?i)" + b"|".join(re.escape(g.encode()) for g in gate)


def _prefilter(patterns: Sequence[bytes]) -> Any:
    made = re2.Filter()
    for pattern in patterns:
        made.Add(pattern, options())
    made.Compile()
    return made
