"""Charts from an answer's results: only points in the result itself, without another look-up.

A result is redacted foreign text: missing, mistyped or infinite values are left out, and an
unreadable result has no chart.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

import orjson
from pydantic import JsonValue

from bot.domain.chart import Chart, Line, Point
from bot.domain.claims import Claim, ClaimState, cited
from bot.domain.turn_events import Evidence, TurnFinished

MOST_LINES: Final = 5  # six with the baseline, which people can still distinguish
MOST_OF_RESULT: Final = 12  # a sweep has the course of four
Fields = Mapping[str, JsonValue]

# The words for a signal in sentences.
_ROLE_WORDS: Final[Mapping[str, str]] = {
    "latency": r"latenc|\bp\d\d|slow|response time|duration",
    "errors": r"error|fail|5xx",
    "traffic": r"traffic|request|throughput|load|calls",
    "cpu": r"cpu",
    "memory": r"memory|heap|oom",
    "disk": r"disk|volume",
    "pool": r"pool|connection",
    "queue": r"queue|backlog|lag",
    "restarts": r"restart|crash",
    "network": r"network|packet|bandwidth",
}
_QUANTILE: Final = re.compile(r"\bp\d{2,3}\b|_p\d{2,3}\b")


def chart_for(final: TurnFinished) -> Chart | None:
    """That of the first statement about a metric that was not found to be wrong."""
    asked = {each.record.tool_call_id: each.record.arguments for each in final.outcomes}
    by_number = {each.number: each for each in final.evidence}
    read: dict[int, tuple[Chart, ...]] = {}  # each result once, however often it is cited
    for claim in final.claims:
        for number in standing_numbers(claim):
            evidence = by_number.get(number)
            if evidence is None:
                continue
            if number not in read:
                read[number] = charts_of(evidence, asked.get(evidence.tool_call_id, {}))
            if (chart := _fitting(claim.text, read[number])) is not None:
                return chart
    return None


def charts_of(evidence: Evidence, arguments: Fields) -> tuple[Chart, ...]:
    """Everything in a result that can be drawn: with two points at least."""
    read = _READERS.get(evidence.tool)
    if read is None or not evidence.ok:
        return ()
    try:
        fields = orjson.loads(evidence.content)
    except orjson.JSONDecodeError:
        return ()
    made = read(evidence.number, fields, arguments) if isinstance(fields, dict) else ()
    some = islice(made, MOST_OF_RESULT)
    lines = ((each, tuple(x for x in each.lines if len(x.points) > 1)) for each in some)
    return tuple(replace(each, lines=drawn[:MOST_LINES]) for each, drawn in lines if drawn)


def standing_numbers(claim: Claim) -> Iterator[int]:
    """The results that a statement cites, if it was not found to be wrong."""
    if claim.state is not ClaimState.CONTRADICTED and not claim.note:
        yield from (number for number in cited(claim.text) if number in claim.evidence)


def _fitting(text: str, charts: Sequence[Chart]) -> Chart | None:
    said = text.lower()
    named = [each for each in charts if not each.role or _speaks_of(each, said)]
    products = {each.product for each in charts if _stands_in(each.product.lower(), said)}
    if products:
        named = [each for each in named if not each.role or each.product in products]
    quantiles = set(_QUANTILE.findall(said))
    return max(named, key=lambda each: _agrees(each, quantiles), default=None)


def _speaks_of(chart: Chart, said: str) -> bool:
    words = _ROLE_WORDS.get(chart.role)
    return bool(words and re.search(words, said)) or chart.metric.lower() in said


def _stands_in(name: str, said: str) -> bool:
    return bool(name) and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said) is not None


def _agrees(chart: Chart, quantiles: set[str]) -> bool:
    own = {each.lstrip("_") for each in _QUANTILE.findall(chart.metric.lower())}
    return not quantiles or bool(own & quantiles)


def _series(number: int, fields: Fields, arguments: Fields) -> Iterator[Chart]:
    rows = _rows(fields.get("series")) or [fields]
    labels = [_labels(row.get("labels")) for row in rows]
    product, metric = _text(arguments, "product"), _text(arguments, "metric_name")
    names = _names(labels) if len(rows) > 1 else [product or "measured"]
    lines = [Line(name, _points(row.get("samples"))) for name, row in zip(names, rows, strict=True)]
    query = " ".join(_text(arguments, "query").split())
    yield Chart(number, product, metric or query, _text(fields, "unit"), tuple(lines))


def _compared(number: int, fields: Fields, arguments: Fields) -> Iterator[Chart]:
    product = _text(arguments, "product")
    if product == "*":
        product = _labels(fields.get("series")).get("product", "")
    line = Line(product or "measured", _points(fields.get("samples")))
    yield Chart(
        number,
        product,
        _text(arguments, "metric_name"),
        _text(fields, "unit"),
        (line,),
        usual=_number(fields.get("baseline_median")),
        since=instant(fields.get("first_anomaly_at")),
    )


def _swept(number: int, fields: Fields, arguments: Fields) -> Iterator[Chart]:
    end = instant(_text(fields, "range").rpartition("/")[2])
    asked = _text(arguments, "product")
    shifts = [
        row for row in _rows(fields.get("shifts")) if end and isinstance(row.get("course"), dict)
    ]
    for row in sorted(shifts, key=lambda each: _text(each, "product") != asked):
        product, held = _text(row, "product"), row.get("course")
        if end is None or not isinstance(held, dict):
            continue
        yield Chart(
            number,
            product,
            _text(row, "signal"),
            _text(row, "unit"),
            (Line(product or "measured", _back_from(end, held)),),
            usual=_number(row.get("usual")),
            since=instant(row.get("since")),
            role=_text(row, "role"),
        )


_Reader = Callable[[int, Fields, Fields], Iterator[Chart]]
_READERS: Final[Mapping[str, _Reader]] = {
    "core__get_metrics": _series,
    "core__query_metrics": _series,
    "core__compare_to_baseline": _compared,
    "core__sweep_metrics": _swept,
}


def _back_from(end: datetime, held: Fields) -> tuple[Point, ...]:
    offsets, values = held.get("before_end_s"), held.get("values")
    if not isinstance(offsets, list) or not isinstance(values, list):
        return ()
    found = []
    for offset, value in zip(offsets, values, strict=False):
        back_s, known = _number(offset), _number(value)
        if back_s is not None and known is not None and abs(back_s) < 1e9:
            found.append((end - timedelta(seconds=back_s), known))
    return tuple(sorted(found))


def _points(value: JsonValue) -> tuple[Point, ...]:
    found = [(instant(row.get("ts")), _number(row.get("value"))) for row in _rows(value)]
    kept = {at: number for at, number in found if at is not None and number is not None}
    return tuple(sorted(kept.items()))


def _names(labels: Sequence[Mapping[str, str]]) -> list[str]:
    keys = dict.fromkeys(key for each in labels for key in each)
    telling = [key for key in keys if len({each.get(key) for each in labels}) > 1]
    made = ["/".join(each[key] for key in telling if key in each) for each in labels]
    return [name or f"series {index}" for index, name in enumerate(made, 1)]


def _rows(value: JsonValue) -> list[Fields]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _labels(value: JsonValue) -> Mapping[str, str]:
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def instant(value: JsonValue) -> datetime | None:
    """A moment in UTC; None for another value, or one outside of this and the next century."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    if not 2000 <= at.year < 2200:
        return None  # not a metric's value, and calendars end
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
