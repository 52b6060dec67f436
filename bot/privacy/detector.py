"""The rules, and the positions to mask in a text, in linear time.

Rules and the checks they name are read from the data files beside this module and compiled. A
prefilter selects the matching rules of each window; only those run for positions. Rules that it
filters poorly run by families, each in a single pass.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter

from bot.privacy import checksums, looks
from bot.privacy.lists import read, read_list
from bot.privacy.matching import Find, Match, finder, forget, groups, literal_filter, pattern_filter

Check = Callable[[str, str], bool]

CHECKS: Final[Mapping[str, Check]] = {
    check.__name__: check
    for check in (
        looks.random, looks.assigned_quoted, looks.assigned_plain, looks.spoken, looks.header_value, looks.artifactory, looks.vendor_value,
        looks.base64_pair, checksums.card, checksums.iban, checksums.us_ssn, checksums.email,
        checksums.phone, checksums.phone_named, checksums.base58check, checksums.bech32,
    )
}  # fmt: skip

Kind = Literal["secret", "identifier", "personal"]
# A word may follow an escape without a boundary: `\nghp_…` in JSON, `%3Dghp_…`, a terminal's colour.
_LEAD = r"(?:\b|\\[nrtbf]|\\u00[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]*m)"


# Large enough that the prefilter's call costs little, small enough that few rules match a window.
WINDOW_BYTES: Final = 4096
# What a rule needs to see of a secret and its surroundings to find it.
OVERLAP_BYTES: Final = 1024
# A window this full of one rule's findings is masked to its end: positions cost too much then.
MAX_FINDINGS: Final = 96
# A finding at a window's end extends while the characters look the same. This many bytes of a value
# identify it.
CHECKED_BYTES: Final = 256
MOST_VERDICTS: Final = 4096
# The name of a number is at most this far before it.
BEFORE_BYTES: Final = 40
_REST = re.compile(rb"[A-Za-z0-9+/=_.~%-]*")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    check: str = ""
    gate: tuple[str, ...] = ()
    family: str = ""
    list: str = ""
    before: bool = False


_SECTION = TypeAdapter(dict[str, _Entry | str])


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `check` is None if the form alone decides.

    RE2 has parsed its pattern; it is compiled on the first possible match, because most never
    match.
    """

    name: str
    kind: Kind
    pattern: bytes
    gate: tuple[str, ...]
    family: str  # rare rules that run together; "" is none
    check: Check | None
    group: int
    name_group: int
    before: bool  # the check gets the text before the value on its line, as its name


@dataclass(frozen=True, slots=True)
class RuleSet:
    """`windowed` rules find what fits into a window; `documents` are run over the whole text."""

    windowed: tuple[Rule, ...]
    documents: tuple[Rule, ...]


@cache
def rule_set(*, pii: bool) -> RuleSet:
    """All rules; without personal data when `pii` is false. Reads files the first time."""
    structure, personal = read("structure"), read("personal")
    windowed = [
        *_compiled(read("tokens"), "secret"),
        *_compiled(structure["lines"], "secret"),
    ]
    if pii:
        windowed += _compiled(personal["identifiers"], "identifier")
        windowed += _compiled(personal["protected"], "personal")
    documents = _compiled(structure["documents"], "secret")
    forget()
    return RuleSet(tuple(windowed), tuple(documents))


def any_of(rules: Sequence[Rule]) -> Find:
    """Finds where the first match of any of the rules starts."""
    bodies = [r.pattern.replace(b"(?P<s>", b"(?:").replace(b"(?P<k>", b"(?:") for r in rules]
    return finder(b"|".join(map(_scoped, bodies)))


def _scoped(body: bytes) -> bytes:
    for flags in (b"i", b"m"):
        if body.startswith(b"(?" + flags + b")"):
            return b"(?" + flags + b":" + body[4:] + b")"
    return b"(?:" + body + b")"


def _compiled(section: object, kind: Kind) -> list[Rule]:
    rules = []
    for name, value in _SECTION.validate_python(section).items():
        entry = _Entry(pattern=value) if isinstance(value, str) else value
        gate = entry.gate
        if entry.list:
            gate = tuple(str(read_list(entry.list)).split())
        text = entry.pattern.replace("%LIST%", "|".join(gate))
        pattern = _with_lead(text).encode("ascii")
        numbers = groups(pattern)
        check = CHECKS[entry.check] if entry.check else None
        rules.append(
            Rule(
                name,
                kind,
                pattern,
                gate,
                entry.family,
                check,
                numbers.get("s", 0),
                numbers.get("k", 0),
                entry.before,
            )
        )
    return rules


def _with_lead(pattern: str) -> str:
    flags, body = ("(?i)", pattern[4:]) if pattern.startswith("(?i)") else ("", pattern)
    if not body.startswith(r"\b"):
        return pattern
    body = body[2:]
    return f"{flags}{_LEAD}{body}" if "(?P<s>" in body else f"{flags}{_LEAD}(?P<s>{body})"


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
        ranked = [*enumerate(rules.windowed)]
        self._documents = [*enumerate(rules.documents)]
        self._gated = [(n, r) for n, r in ranked if r.gate]
        self._plain = [(n, r) for n, r in ranked if not r.gate and not r.family]
        self._families = _families([(n, r) for n, r in ranked if r.family])
        self._gates = literal_filter([r.gate for _, r in self._gated])
        self._filter = pattern_filter([r.pattern for _, r in self._plain])
        self._document_filter = pattern_filter([r.pattern for r in rules.documents])
        self._verdicts: dict[bytes, bool] = {}

    def spans(self, data: bytes) -> list[Span]:
        """All findings, in no order, possibly overlapping."""
        search = _Search(data, self._verdicts)
        size = len(data)
        for index in self._document_filter(data):
            search.run(self._documents[index], 0, size, size)
        for start in range(0, size, WINDOW_BYTES):
            stop = min(start + WINDOW_BYTES, size)
            end = min(stop + OVERLAP_BYTES, size)
            window = data if start == 0 and end == size else data[start:end]
            for index in self._gates(window):
                search.run(self._gated[index], start, stop, end)
            for index in self._filter(window):
                search.run(self._plain[index], start, stop, end)
            for find, members in self._families:
                match = find(data, start, end)
                if match is not None and match.start() < stop:
                    for member in members:
                        search.run(member, match.start(), stop, end)
        return search.found


class _Search:
    def __init__(self, data: bytes, verdicts: dict[bytes, bool]) -> None:
        self.found: list[Span] = []
        self._data = data
        self._run = (0, 0)  # the last run of like characters, so that none is walked twice
        self._masked: dict[str, int] = {}  # how far a rule's run that left its window goes
        self._verdicts = verdicts

    def run(self, ranked: tuple[int, Rule], start: int, stop: int, end: int) -> None:
        rank, rule = ranked
        data, group, left = self._data, rule.group, MAX_FINDINGS
        find = finder(rule.pattern)
        at = max(start, self._masked.get(rule.name, 0) - OVERLAP_BYTES)
        while at < stop and (match := find(data, at, end)) and match.start() < stop:
            first, last = match.span(group)
            at = max(last, at + 1)
            if last <= first or (rule.check and not self._holds(rule.check, rank, rule, match)):
                continue
            left -= 1
            if not left:
                self.found.append(Span(first, end, rank, rule.name, rule.kind))
                return
            whole = last
            if last == end:
                whole = self._masked[rule.name] = self._end(last)
            self.found.append(Span(first, whole, rank, rule.name, rule.kind))

    def _holds(self, check: Check, rank: int, rule: Rule, match: Match) -> bool:
        """The check's verdict, remembered by a digest: texts repeat themselves and each other."""
        first, last = match.span(rule.group)
        value = self._data[first : min(last, first + CHECKED_BYTES)]
        if rule.before:
            name = self._data[max(0, first - BEFORE_BYTES) : first].rpartition(b"\n")[2]
        else:
            start, end = match.span(rule.name_group) if rule.name_group else (0, 0)
            name = self._data[start:end]
        asked = b"%d %d %b%b" % (rank, len(name), name, value)
        digest = hashlib.blake2b(asked, digest_size=16).digest()
        verdict = self._verdicts.get(digest)
        if verdict is None:
            if len(self._verdicts) >= MOST_VERDICTS:
                self._verdicts.clear()
            verdict = check(name.decode("latin-1"), value.decode("latin-1"))
            self._verdicts[digest] = verdict
        return verdict

    def _end(self, at: int) -> int:
        start, end = self._run
        if not start <= at <= end:
            rest = _REST.match(self._data, at)
            end = rest.end() if rest is not None else at
            self._run = (at, end)
        return end


def _families(ranked: Sequence[tuple[int, Rule]]) -> list[tuple[Find, list[tuple[int, Rule]]]]:
    by_name = sorted(ranked, key=lambda r: r[1].family)
    members = [list(group) for _, group in groupby(by_name, key=lambda r: r[1].family)]
    return [(any_of([rule for _, rule in group]), group) for group in members]
