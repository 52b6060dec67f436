"""Index a result's numbers, names, states and texts, each with the product of its row.

Rows of one shape are similar: a key's meaning is found for the first of them, and a repeated text
under the same key adds nothing. So a list of log lines costs little more than its new words.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import orjson
from pydantic import JsonValue

from bot.chat.claims.clocks import STAMP, instants
from bot.chat.claims.quantities import KnownNumber, loose_numbers
from bot.chat.claims.rows import BY_PRODUCT, owners_of
from tools.log_templates import without_clock

PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._/-]{1,80}")
_DENSE = frozenset({"samples", "lines", "logs", "points", "values", "children"})
# Is there for charts: among so many points nearly any figure would be found.
_DRAWN = frozenset({"course"})
_NAMED = frozenset(
    ["product", "service", "host", "pod", "app", "app_name", "application", "name", "object",
     "container", "node", "instance"]
)  # fmt: skip
_STATUS = frozenset({"status", "state", "phase", "reason"})
_COUNTED = frozenset(
    {"n", "span_count", "total", "total_matches", "anomaly_count", "count", "limit"}
)
_OF_NO_UNIT = ("z_score", "score")  # how far, not how much
_KEY_FAMILIES = (
    (re.compile(r"_us$|_micros$|microseconds"), "time", 1e-6),
    (re.compile(r"_ms$|millis|milliseconds"), "time", 1e-3),
    (re.compile(r"_s$|seconds|_secs?$"), "time", 1.0),
    (re.compile(r"ratio|share|fraction|coverage|relative_change|utili[sz]ation"), "ratio", 1.0),
    (re.compile(r"pct|percent"), "ratio", 0.01),
    (re.compile(r"bytes"), "bytes", 1.0),
)  # fmt: skip
# What a row that says its own unit measures in it; its scores, counts and rates are in none.
_IN_ROWS_UNIT = frozenset({"usual", "worst", "last", "now", "first", "limit"})
# core__sweep_traces says by its kind of change what `before` and `after` are.
_OF_CHANGE = {
    "failing": ("ratio", 1.0),
    "cut": ("ratio", 1.0),
    "own": ("time", 1e-3),
    "way": ("time", 1e-3),
}
_TELLS_ITSELF = frozenset({"product", "unit", "what"})  # what a row's own figures are
_OF_BEFORE = ("baseline", "before", "earlier", "yesterday", "usual", "expected")
_LOGFMT_VALUE = re.compile(r"=(\d{1,12}(?:\.\d{1,9})?)(?![\w.])")
_LOGFMT_KEY = re.compile(r"[a-z_](?<!\w.)[a-z_]{0,39}\Z")
_LONGEST_KEY = 40
_DIGIT = re.compile(r"\d")
_LONGEST_TALLIED = 60  # characters of a word in a column

NOBODY: frozenset[str] = frozenset()


@dataclass(slots=True)
class JsonIndex:
    """Numbers by product; states, instants and texts in reading order."""

    numbers: defaultdict[frozenset[str], set[KnownNumber]] = field(
        default_factory=lambda: defaultdict(set)
    )
    usual: defaultdict[frozenset[str], set[KnownNumber]] = field(
        default_factory=lambda: defaultdict(set)
    )
    salient: list[datetime] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    statuses: list[str] = field(default_factory=list)
    owners: set[str] = field(default_factory=set)
    texts: list[tuple[frozenset[str], str]] = field(default_factory=list)


class Reader:
    """Reads the results of one turn: of each text and each key once, however many results have it."""

    def __init__(self) -> None:
        self._numbers: dict[str, Sequence[KnownNumber]] = {}
        self._families: dict[str, tuple[str, float] | None] = {}
        self._without_clocks: dict[str, str] = {}

    def numbers(self, text: str) -> Sequence[KnownNumber]:
        """Those of a free text, with its `key=1.5` pairs; none are those of a time."""
        known = self._numbers.get(text)
        if known is None:
            has_any = STAMP.fullmatch(text) is None and _DIGIT.search(text) is not None
            known = self._numbers[text] = tuple(self._read(text)) if has_any else ()
        return known

    def without_clock(self, text: str) -> str:
        """See `tools.log_templates.without_clock`."""
        known = self._without_clocks.get(text)
        if known is None:
            known = self._without_clocks[text] = without_clock(text)
        return known

    def family(self, key: str) -> tuple[str, float] | None:
        try:
            return self._families[key]
        except KeyError:
            told = ((f, size) for pattern, f, size in _KEY_FAMILIES if pattern.search(key))
            found = self._families[key] = next(told, None)
            return found

    def _read(self, text: str) -> Iterator[KnownNumber]:
        yield from loose_numbers(STAMP.sub(" ", text) if text.count("-") > 1 else text)
        for value in _LOGFMT_VALUE.finditer(text):
            at = value.start()
            if key := _LOGFMT_KEY.search(text, max(0, at - _LONGEST_KEY), at):
                family, size = self.family(key[0]) or ("", 1.0)
                yield KnownNumber(float(value[1]), float(value[1]) * size, family)


@dataclass(slots=True, eq=False)
class _Place:
    key: str
    family: str
    size: float
    dense: bool
    measured: frozenset[str] = NOBODY  # the keys of this row that `of_row` is the unit of
    of_row: tuple[str, float] = ("", 1.0)
    of: frozenset[str] = NOBODY  # the row's product
    listed: bool = False
    below: dict[str, "_Place"] = field(init=False, default_factory=dict)
    in_list: "_Place | None" = field(init=False, default=None)
    read: set[str] = field(init=False, default_factory=set)
    is_before: bool | None = field(init=False, default=None)


def indexed(value: JsonValue, unit: tuple[str, float], reader: Reader) -> JsonIndex:
    """All of a result that is in `unit` where its keys do not say otherwise."""
    walk = _Walk(reader)
    walk.all_of(value, _Place("", *unit, dense=False))
    return walk.found


class _Walk:
    """In reading order by an own stack: a result may be nested deeper than Python likes."""

    def __init__(self, reader: Reader) -> None:
        self.found = JsonIndex()
        self._reader = reader

    def all_of(self, value: JsonValue, place: _Place) -> None:
        waiting: list[tuple[JsonValue, _Place]] = [(value, place)]
        while waiting:
            node, at = waiting.pop()
            if isinstance(node, dict):
                later = self._row(node, at)
            elif isinstance(node, list):
                later = self._list(node, at)
            else:
                later = []
                self._leaf(node, at, later)
            if later:
                later.reverse()
                waiting += later

    def _row(self, node: Mapping[str, JsonValue], at: _Place) -> list[tuple[JsonValue, _Place]]:
        if at.key:
            if not _TELLS_ITSELF.isdisjoint(node):
                at = self._as_row(node, at)
            if at.key in BY_PRODUCT and not at.listed:
                self.found.owners.update(key.lower() for key in node)
        below, texts = at.below, self.found.texts
        later: list[tuple[JsonValue, _Place]] = []
        for key, child in node.items():
            where = below.get(key)
            if where is None:
                if key in _DRAWN:
                    continue
                where = self._within(key, at)
            if later:
                later.append((child, where))
            elif isinstance(child, str):
                if child in where.read:
                    texts.append((where.of, child))
                else:
                    self._text(child, where, later)
            else:
                self._leaf(child, where, later)
        return later

    def _list(self, node: Sequence[JsonValue], at: _Place) -> list[tuple[JsonValue, _Place]]:
        counts = self.found.numbers[NOBODY]
        counts.add(_count(len(node)))
        counts.update(map(_count, _tallies(node)))
        where = at.in_list
        if where is None:
            where = at.in_list = replace(at, listed=True)
        later: list[tuple[JsonValue, _Place]] = []
        for child in node:
            if later or isinstance(child, dict):
                later.append((child, where))
            else:
                self._leaf(child, where, later)
        return later

    def _leaf(self, value: JsonValue, at: _Place, later: list[tuple[JsonValue, _Place]]) -> None:
        if isinstance(value, str):
            self._text(value, at, later)
        elif isinstance(value, dict | list):
            later.append((value, at))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(float(value), at)

    def _as_row(self, node: Mapping[str, JsonValue], at: _Place) -> _Place:
        if owners := owners_of(node):
            self.found.owners |= owners
            at = replace(at, of=owners)
        unit, change = node.get("unit"), node.get("what")
        if isinstance(unit, str) and (said := self._reader.family("_" + unit.lower())):
            return replace(at, measured=_IN_ROWS_UNIT, of_row=said)
        if isinstance(change, str) and change in _OF_CHANGE:
            return replace(at, measured=frozenset({"before", "after"}), of_row=_OF_CHANGE[change])
        return at

    def _within(self, key: str, at: _Place) -> _Place:
        of = frozenset({key.lower()}) if at.key in BY_PRODUCT and not at.listed else at.of
        if key in at.measured:
            place = _Place("" if key == "limit" else key, *at.of_row, at.dense, of=of)
        else:
            family, size = self._reader.family(key) or (at.family, at.size)
            place = _Place(key, family, size, at.dense or key in _DENSE, of=of)
        at.below[key] = place
        return place

    def _number(self, value: float, at: _Place) -> None:
        if at.key in _COUNTED:
            known = KnownNumber(value, value, "count")
        elif at.key.endswith(_OF_NO_UNIT):
            known = KnownNumber(value, value, "z")
        else:
            known = KnownNumber(value, value * at.size, at.family)
        self.found.numbers[at.of].add(known)
        if at.is_before is None:
            at.is_before = any(word in at.key for word in _OF_BEFORE)
        if at.is_before:
            self.found.usual[at.of].add(known)

    def _text(self, text: str, at: _Place, later: list[tuple[JsonValue, _Place]]) -> None:
        found = self.found
        if text in at.read:
            found.texts.append((at.of, text))
            return
        if at.key in _NAMED and PLAIN_NAME.fullmatch(text):
            found.names.add(text.lower())
        if at.key in _STATUS:
            found.statuses.append(text.lower())
        if text.startswith(("{", "[")):  # a structured log line
            try:
                inner = _Place(at.key, "", 1.0, dense=True, of=at.of, listed=True)
                later.append((orjson.loads(text), inner))
            except orjson.JSONDecodeError:
                pass
            else:
                return
        at.read.add(text)
        if not at.dense:
            found.salient.extend(instants(text))
        found.texts.append((at.of, text))
        if numbers := self._reader.numbers(text):
            found.numbers[at.of].update(numbers)


def _count(of: int) -> KnownNumber:
    return KnownNumber(of, of, "count")


def _tallies(rows: Sequence[JsonValue]) -> set[int]:
    tally = Counter(
        [
            (key, word)
            for row in rows
            if isinstance(row, dict)
            for key, word in row.items()
            if isinstance(word, str) and len(word) < _LONGEST_TALLIED
        ]
    )
    for row in rows:
        if isinstance(row, list):
            tally.update((str(i), word) for i, word in enumerate(row) if isinstance(word, str))
    return set(tally.values())
