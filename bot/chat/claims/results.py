"""One tool result as what a sentence can be held against: numbers, times, words, directions, states."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import combinations

import orjson
from pydantic import JsonValue

from bot.chat.claims.clocks import STAMP, clock, clocks_in, instants
from bot.chat.claims.names import folded
from bot.chat.claims.own import Own, by_owner, joined
from bot.chat.claims.quantities import Known, loose_numbers
from bot.chat.claims.rows import BY_PRODUCT, Row, owners_of, rows_of
from bot.domain.turn_events import Evidence
from tools.log_templates import without_clock

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_DENSE = frozenset({"samples", "lines", "logs", "points", "values", "children"})
# Is there for charts: among so many points nearly any figure would be found.
_DRAWN = frozenset({"course"})
_NAMED = frozenset(
    [
        "product",
        "service",
        "host",
        "pod",
        "app",
        "app_name",
        "application",
        "name",
        "object",
        "container",
        "node",
        "instance",
    ]
)
_STATUS = frozenset({"status", "state", "phase", "reason"})
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._/-]{1,80}")
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
_MOST_SALIENT = 40
# What a row that says its own unit measures in it; its scores, counts and rates are in none.
_IN_ROWS_UNIT = frozenset({"usual", "worst", "last", "now", "first", "limit"})
# core__sweep_traces says by its kind of change what `before` and `after` are.
_OF_CHANGE = {"failing": ("ratio", 1.0), "own": ("time", 1e-3), "way": ("time", 1e-3)}
_OF_BEFORE = ("baseline", "before", "earlier", "yesterday", "usual", "expected")


@dataclass(frozen=True, slots=True)
class Compared:
    """Where a series went. `sure`: the tool says so itself; else its two ends do."""

    product: str
    direction: str  # up, down or flat
    sure: bool
    says: str


@dataclass(slots=True)
class _Walked:
    numbers: list[Known] = field(default_factory=list)
    salient: list[datetime] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    statuses: list[str] = field(default_factory=list)
    usual: list[Known] = field(default_factory=list)
    owners: set[str] = field(default_factory=set)
    texts: list[tuple[frozenset[str], str]] = field(default_factory=list)


@dataclass(slots=True)
class _Place:
    key: str
    family: str
    size: float
    dense: bool
    measured: frozenset[str] = frozenset()  # the keys of this row that `of_row` is the unit of
    of_row: tuple[str, float] = ("", 1.0)
    of: frozenset[str] = frozenset()  # whose row it is
    listed: bool = False


class Result:
    """A numbered result. Everything is read when first asked for, and once."""

    def __init__(self, evidence: Evidence, arguments: Mapping[str, JsonValue]) -> None:
        self.evidence = evidence
        self.number = evidence.number
        self.arguments = arguments

    @cached_property
    def value(self) -> JsonValue:
        """The result as JSON; a text that is none, as it is."""
        try:
            value: JsonValue = orjson.loads(self.evidence.content)
        except orjson.JSONDecodeError:
            return self.evidence.content
        return value

    @cached_property
    def fields(self) -> Mapping[str, JsonValue]:
        """Its outermost fields."""
        return self.value if isinstance(self.value, dict) else {}

    @cached_property
    def text(self) -> str:
        """All of it in lower case, with what was asked."""
        asked = orjson.dumps(dict(self.arguments)).decode() if self.arguments else ""
        return "\n".join([self.evidence.content, self.evidence.summary, asked]).lower()

    @cached_property
    def folded(self) -> str:
        """Its texts, letters and digits alone; also without the ids that nobody quotes."""
        texts = [text for _, text in self.walked.texts]
        return folded("\n".join([*texts, *map(without_clock, texts)]))

    @cached_property
    def clocks(self) -> frozenset[str]:
        """Every minute of the clock in it, HH:MM in UTC."""
        rest = STAMP.sub(" ", self.evidence.content + " " + self.evidence.summary)
        return frozenset(map(clock, instants(self.text.upper()))) | clocks_in(rest)

    def own(self, of: frozenset[str]) -> Own:
        """What is not of others' rows."""
        return joined(self._own, of)

    @cached_property
    def _own(self) -> Mapping[str, Own]:
        walked = self.walked
        texts = [*walked.texts, (frozenset[str](), self.evidence.summary)]
        return by_owner(walked.numbers, walked.usual, texts)

    @cached_property
    def rows(self) -> Mapping[str, Sequence[Row]]:
        """Which way things went, by product in lower case, where it is a sweep."""
        found: dict[str, list[Row]] = {}
        for row in rows_of(self.fields):
            found.setdefault(row.product.lower(), []).append(row)
        return found

    @cached_property
    def dates(self) -> frozenset[str]:
        """Every day in it, YYYY-MM-DD."""
        return frozenset(_DATE.findall(re.sub("t(?=\\d\\d:)", " ", self.text)))

    @cached_property
    def walked(self) -> _Walked:
        """Its tree, walked once."""
        found = _Walked()
        family, size = self._unit()
        _walk(self.value, _Place("", family, size, dense=False), found)
        found.numbers.extend(loose_numbers(STAMP.sub(" ", self.evidence.summary)))
        found.numbers.extend(self._derived())
        found.numbers.extend(_lapses(found.salient))
        for key in ("product", "app_name", "name"):
            if isinstance(value := self.arguments.get(key), str) and _PLAIN_NAME.fullmatch(value):
                found.names.add(value.lower())
        return found

    @cached_property
    def onsets(self) -> frozenset[str]:
        """Minutes at which something began, HH:MM; without those of single samples."""
        return frozenset(clock(each) for each in self.walked.salient)

    @cached_property
    def compared(self) -> Sequence[Compared]:
        """Where its series went; empty when it has none, or too little to say."""
        return tuple(_compared(self.fields, self.arguments))

    @cached_property
    def is_empty_comparison(self) -> bool:
        """A comparison that had nothing to compare."""
        return "baseline_window" in self.fields and not self.compared

    def _unit(self) -> tuple[str, float]:
        unit = self.fields.get("unit")
        name = self.arguments.get("metric_name")
        if isinstance(unit, str) and unit:
            return _family("_" + unit.lower()) or ("", 1.0)
        if isinstance(name, str):
            return _family(name) or ("", 1.0)
        return "", 1.0

    def _derived(self) -> Iterator[Known]:
        """How many times the usual, from what the result says of both."""
        for row in [self.fields, *_rows(self.fields.get("products"))]:
            change = row.get("relative_change")
            if isinstance(change, int | float):
                yield Known(change + 1, change + 1, "factor")
            for usual in ("baseline_mean", "baseline_median", "hour_before_median"):
                for now in ("window_max", "window_mean", "window_median"):
                    a, b = row.get(now), row.get(usual)
                    if isinstance(a, int | float) and isinstance(b, int | float) and b:
                        yield Known(a / b, a / b, "factor")
                        yield Known(a / b - 1, a / b - 1, "ratio")


def _rows(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _family(key: str) -> tuple[str, float] | None:
    return next(((f, size) for pattern, f, size in _KEY_FAMILIES if pattern.search(key)), None)


def _lapses(salient: Sequence[datetime]) -> Iterator[Known]:
    """The times between what happened, in seconds."""
    few = list(dict.fromkeys(salient))[:_MOST_SALIENT]
    for one, other in combinations(few, 2):
        yield Known(0.0, abs((one - other).total_seconds()), "time")


def _walk(value: JsonValue, place: _Place, found: _Walked) -> None:
    """Breadth by an own stack: a result may be nested deeper than Python likes."""
    waiting: list[tuple[JsonValue, _Place]] = [(value, place)]
    while waiting:
        node, at = waiting.pop()
        if isinstance(node, dict):
            at = _as_row(node, at)
            found.owners |= at.of
            inner = [(key, child) for key, child in node.items() if key not in _DRAWN]
            if at.key in BY_PRODUCT and not at.listed:
                found.owners.update(key.lower() for key in node)
            waiting.extend((child, _within(key, at)) for key, child in reversed(inner))
        elif isinstance(node, list):
            found.numbers.append(Known(len(node), len(node), "count"))
            found.numbers.extend(_tallies(node))
            listed = replace(at, listed=True)
            waiting.extend((child, listed) for child in reversed(node))
        elif isinstance(node, str):
            _read_text(node, at, found, waiting)
        elif isinstance(node, int | float) and not isinstance(node, bool):
            known = _known(float(node), at)
            found.numbers.append(known)
            if any(word in at.key for word in _OF_BEFORE):
                found.usual.append(known)


def _as_row(node: Mapping[str, JsonValue], at: _Place) -> _Place:
    """Where a row says what its own figures are in, they are in that: each may be in another."""
    unit, change = node.get("unit"), node.get("what")
    if at.key and (owners := owners_of(node)):
        at = replace(at, of=owners)
    if at.key and isinstance(unit, str) and (found := _family("_" + unit.lower())):
        return replace(at, measured=_IN_ROWS_UNIT, of_row=found)
    if at.key and isinstance(change, str) and change in _OF_CHANGE:
        return replace(at, measured=frozenset({"before", "after"}), of_row=_OF_CHANGE[change])
    return at


def _within(key: str, at: _Place) -> _Place:
    of = frozenset({key.lower()}) if at.key in BY_PRODUCT and not at.listed else at.of
    if key in at.measured:
        return _Place("" if key == "limit" else key, *at.of_row, at.dense, of=of)
    family, size = _family(key) or (at.family, at.size)
    return _Place(key, family, size, at.dense or key in _DENSE, of=of)


def _known(value: float, at: _Place) -> Known:
    if at.key in _COUNTED:
        return Known(value, value, "count", of=at.of)
    if at.key.endswith(_OF_NO_UNIT):
        return Known(value, value, "z", of=at.of)
    return Known(value, value * at.size, at.family, of=at.of)


def _read_text(
    text: str, at: _Place, found: _Walked, waiting: list[tuple[JsonValue, _Place]]
) -> None:
    if at.key in _NAMED and _PLAIN_NAME.fullmatch(text):
        found.names.add(text.lower())
    if at.key in _STATUS:
        found.statuses.append(text.lower())
    if text.startswith(("{", "[")):  # a structured log line
        try:
            inner = _Place(at.key, "", 1.0, dense=True, of=at.of, listed=True)
            waiting.append((orjson.loads(text), inner))
        except orjson.JSONDecodeError:
            pass
        else:
            return
    if not at.dense:
        found.salient.extend(instants(text))
    found.texts.append((at.of, text))
    found.numbers.extend(replace(one, of=at.of) for one in loose_numbers(STAMP.sub(" ", text)))
    for key, number in _LOGFMT.findall(text):
        family, size = _family(key) or ("", 1.0)
        found.numbers.append(Known(float(number), float(number) * size, family, of=at.of))


_LOGFMT = re.compile(r"\b([a-z_]{1,40})=(\d{1,12}(?:\.\d{1,9})?)(?![\w.])")


def _tallies(rows: Sequence[JsonValue]) -> Iterator[Known]:
    """How often each word stands in a column: "2 of 3 pods run", "4 error lines"."""
    tally: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if isinstance(row, dict):
            tally.update((k, v) for k, v in row.items() if isinstance(v, str) and len(v) < 60)
        elif isinstance(row, list):
            tally.update((str(i), v) for i, v in enumerate(row) if isinstance(v, str))
    for count in set(tally.values()):
        yield Known(count, count, "count")


def _compared(
    fields: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]
) -> Iterator[Compared]:
    asked = str(arguments.get("product") or "")
    rows = _rows(fields.get("products"))
    if isinstance(fields.get("direction"), str) and not rows:
        yield Compared(asked, _way(fields), sure=True, says=_said(fields))
    for row in rows:
        if isinstance(row.get("direction"), str):
            yield Compared(str(row.get("product") or ""), _way(row), sure=True, says=_said(row))
    if "step_s" in fields:
        for one in [fields, *_rows(fields.get("series"))]:
            trend = _trend(_rows(one.get("samples")))
            if trend is not None:
                yield Compared(asked, trend[0], sure=False, says=trend[1])


def _way(row: Mapping[str, JsonValue]) -> str:
    return str(row["direction"]) if row.get("anomalous") is True else "flat"


def _said(row: Mapping[str, JsonValue]) -> str:
    words = {"up": "above its baseline", "down": "below its baseline"}
    told = words.get(_way(row), "within its baseline")
    now, usual = row.get("window_median"), row.get("baseline_median")
    if isinstance(now, int | float) and isinstance(usual, int | float):
        told += f" ({now:.3g}, usually {usual:.3g})"
    return told


def _trend(rows: Sequence[Mapping[str, JsonValue]]) -> tuple[str, str] | None:
    """From the first third to the last one; None unless it is far."""
    values = [float(v) for row in rows if isinstance(v := row.get("value"), int | float)]
    if len(values) < 3:
        return None
    third = max(1, len(values) // 3)
    first, last = sum(values[:third]) / third, sum(values[-third:]) / third
    if last > first * 1.3 and first >= 0:
        return "up", f"from {first:.3g} to {last:.3g}"
    if first > last * 1.3 and last >= 0:
        return "down", f"from {first:.3g} to {last:.3g}"
    return None
