"""One tool result as what a sentence can be held against: numbers, times, words, directions, states."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import combinations

import orjson
from pydantic import JsonValue

from bot.chat.claims.clocks import STAMP, Clocks, clock, clocks_in, instants, minutes
from bot.chat.claims.facts import rows_in
from bot.chat.claims.json_index import NOBODY, PLAIN_NAME, JsonIndex, Reader, indexed
from bot.chat.claims.names import Name, folded, stands_in
from bot.chat.claims.quantities import Figure, KnownNumber, Numbers, loose_numbers
from bot.chat.claims.rows import Row, rows_of
from bot.domain.turn_events import Evidence
from tools.analysis.comparable import least_age_s

_NOBODY = frozenset({""})


class Part:
    """Numbers, those of the time before, minutes and words. Each is made when first asked for."""

    def __init__(
        self, numbers: Collection[KnownNumber], usual: Collection[KnownNumber], texts: Sequence[str]
    ) -> None:
        self._known = numbers
        self._usual = usual
        self._texts = texts
        self._told: dict[str, bool] = {}

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(self._known)

    @cached_property
    def usual(self) -> Numbers:
        """Those of the time before."""
        return Numbers(self._usual)

    @cached_property
    def text(self) -> str:
        """Its words, in lower case."""
        return self._said.lower()

    def tells(self, figure: Figure) -> bool:
        """As written, with its unit, as a word: `250m`, `1m 58s`."""
        told = self._told.get(figure.text)
        if told is None:
            written = {figure.text.lower(), figure.key.lower()}
            told = self._told[figure.text] = any(_has_word(self.text, one) for one in written)
        return told

    @cached_property
    def clocks(self) -> Clocks:
        return Clocks(self._said, self._minutes)

    def _minutes(self) -> frozenset[str]:
        return minutes(self._said) | clocks_in(STAMP.sub(" ", self._said))

    @cached_property
    def _said(self) -> str:
        return "\n".join(self._texts)


class Whole(Part):
    """A whole result: its values, its summary, and the arguments."""

    def _minutes(self) -> frozenset[str]:
        content, summary, *_ = self._texts
        return minutes(self.text.upper()) | clocks_in(STAMP.sub(" ", f"{content} {summary}"))


def parts_of(index: JsonIndex, summary: str) -> Mapping[frozenset[str], Part]:
    """The parts by their products, in lower case; those about no product under the empty name."""
    texts: dict[frozenset[str], list[str]] = {_NOBODY: [summary]}
    for of, text in index.texts:
        texts.setdefault(of or _NOBODY, []).append(text)
    owners = texts.keys() | {of or _NOBODY for of in index.numbers}
    return {
        of: Part(
            [n for each in _of(of) for n in index.numbers.get(each, ())],
            [n for each in _of(of) for n in index.usual.get(each, ())],
            texts.get(of, ()),
        )
        for of in owners
    }


def _of(owners: frozenset[str]) -> tuple[frozenset[str], ...]:
    return (owners, frozenset()) if owners == _NOBODY else (owners,)


def of_these(parts: Mapping[frozenset[str], Part], named: Collection[str]) -> Sequence[Part]:
    """The parts about these products, and those about none."""
    asked = _NOBODY.union(named)
    return [part for of, part in parts.items() if not asked.isdisjoint(of)]


def _has_word(text: str, written: str) -> bool:
    at = text.find(written)
    while at >= 0:
        end = at + len(written)
        if (
            not (text[at - 1 : at].isalnum() or text[at - 1 : at] in (".", ","))
            and not text[end : end + 1].isalnum()
        ):
            return True
        at = text.find(written, end)
    return False


_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_MOST_SALIENT = 40
_LONG_NAME = 20  # characters
_OF_LINES = ("message", "line", "example")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Compared:
    """Where a series went, by what the tool says or by its two ends."""

    product: str
    direction: str  # up, down or flat
    says: str


class Result:
    """A numbered result. Everything is read when first asked for, and once."""

    def __init__(
        self, evidence: Evidence, arguments: Mapping[str, JsonValue], reader: Reader
    ) -> None:
        self.evidence = evidence
        self.number = evidence.number
        self.arguments = arguments
        self._reader = reader
        self._named: dict[tuple[str, str], bool] = {}

    @cached_property
    def value(self) -> JsonValue:
        try:
            value: JsonValue = orjson.loads(self.evidence.content)
        except orjson.JSONDecodeError:
            return self.evidence.content
        return value

    @cached_property
    def fields(self) -> Mapping[str, JsonValue]:
        return self.value if isinstance(self.value, dict) else {}

    @cached_property
    def log_lines(self) -> frozenset[str]:
        """Its log lines and examples of them, each whole."""
        lists = [self.fields.get(key) for key in ("lines", "changes")]
        rows = [row for each in lists if isinstance(each, list) for row in each]
        told = [row.get(key) for row in rows if isinstance(row, dict) for key in _OF_LINES]
        return frozenset(each for each in told if isinstance(each, str))

    @cached_property
    def whole(self) -> Whole:
        asked = orjson.dumps(dict(self.arguments)).decode() if self.arguments else ""
        index = self.index
        return Whole(
            [number for of in index.numbers.values() for number in of],
            [number for of in index.usual.values() for number in of],
            [self.evidence.content, self.evidence.summary, asked],
        )

    @cached_property
    def text(self) -> str:
        return self.whole.text

    def has(self, name: Name) -> bool:
        """Whether it has a name as a word; a long one also with other marks in it, or cut."""
        key = (name.kind, name.key)
        if key not in self._named:
            is_long = len(name.key) >= _LONG_NAME
            self._named[key] = stands_in(name, self.text) or (
                is_long and folded(name.key) in self.folded
            )
        return self._named[key]

    @cached_property
    def folded(self) -> str:
        texts = [text for _, text in self.index.texts]
        return folded("\n".join([*texts, *map(self._reader.without_clock, texts)]))

    @cached_property
    def folded_whole(self) -> str:
        """The whole result with its arguments, letters and digits alone."""
        return folded(self.text)

    def of(self, named: Collection[str]) -> Sequence[Part]:
        """The parts about these products, and those about none."""
        return of_these(self._parts, named)

    @cached_property
    def _parts(self) -> Mapping[frozenset[str], Part]:
        return parts_of(self.index, self.evidence.summary)

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
    def index(self) -> JsonIndex:
        """Its numbers, names, states and texts, read once."""
        found = indexed(self.value, self.unit, self._reader)
        of_nobody = found.numbers[NOBODY]
        of_nobody.update(loose_numbers(STAMP.sub(" ", self.evidence.summary)))
        of_nobody.update(self._derived())
        of_nobody.update(_lapses(found.salient))
        of_nobody.update(_age_needed(self.fields))
        for key in ("product", "app_name", "name"):
            if isinstance(value := self.arguments.get(key), str) and PLAIN_NAME.fullmatch(value):
                found.names.add(value.lower())
        return found

    @cached_property
    def onsets(self) -> frozenset[str]:
        """Minutes at which something began, HH:MM; without those of single samples."""
        return frozenset(clock(each) for each in self.index.salient)

    @cached_property
    def compared(self) -> Sequence[Compared]:
        """Where its series went; empty when it has none, or too little to say."""
        return tuple(_compared(self.fields, self.arguments))

    @cached_property
    def is_empty_comparison(self) -> bool:
        """A comparison that had nothing to compare."""
        return "baseline_window" in self.fields and not self.compared

    def family_of(self, unit: str) -> tuple[str, float]:
        """What a unit's name says that numbers are in."""
        return self._reader.family("_" + unit.lower()) or ("", 1.0)

    @cached_property
    def unit(self) -> tuple[str, float]:
        """What its numbers are in, where their keys do not say otherwise."""
        unit = self.fields.get("unit")
        name = self.arguments.get("metric_name")
        if isinstance(unit, str) and unit:
            return self.family_of(unit)
        if isinstance(name, str):
            return self._reader.family(name) or ("", 1.0)
        return "", 1.0

    def _derived(self) -> Iterator[KnownNumber]:
        for row in [self.fields, *rows_in(self.fields.get("products"))]:
            change = row.get("relative_change")
            if isinstance(change, int | float):
                yield KnownNumber(change + 1, change + 1, "factor")
            for usual in ("baseline_mean", "baseline_median", "hour_before_median"):
                for now in ("window_max", "window_mean", "window_median"):
                    a, b = row.get(now), row.get(usual)
                    if isinstance(a, int | float) and isinstance(b, int | float) and b:
                        yield KnownNumber(a / b, a / b, "factor")
                        yield KnownNumber(a / b - 1, a / b - 1, "ratio")


def _age_needed(fields: Mapping[str, JsonValue]) -> Iterator[KnownNumber]:
    before = fields.get("least_before_s")
    ends = list(instants(str(fields.get("range"))))
    if isinstance(before, int | float) and len(ends) == 2:
        needed = least_age_s((ends[1] - ends[0]).total_seconds(), before)
        yield KnownNumber(0.0, needed, "time")


def _lapses(salient: Sequence[datetime]) -> Iterator[KnownNumber]:
    few = list(dict.fromkeys(salient))[:_MOST_SALIENT]
    at = [(each - _EPOCH) // _MICROSECOND for each in few]
    for apart in {abs(one - other) for one, other in combinations(at, 2)}:
        yield KnownNumber(0.0, apart / 1_000_000, "time")


def _compared(
    fields: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]
) -> Iterator[Compared]:
    asked = str(arguments.get("product") or "")
    rows = rows_in(fields.get("products"))
    if isinstance(fields.get("direction"), str) and not rows:
        yield Compared(asked, _way(fields), says=_said(fields))
    for row in rows:
        if isinstance(row.get("direction"), str):
            yield Compared(str(row.get("product") or ""), _way(row), says=_said(row))
    if "step_s" in fields:
        for one in [fields, *rows_in(fields.get("series"))]:
            trend = _trend(rows_in(one.get("samples")))
            if trend is not None:
                yield Compared(asked, trend[0], says=trend[1])


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
