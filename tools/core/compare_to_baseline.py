"""core__compare_to_baseline: is a metric unusual now, against the day before and the hour before?

The window under test and a guard gap before it are left out of the baseline, so that the incident
does not raise its own bar. With product "*", every product of the channel is compared in one query.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median

from tools.baseline import baseline
from tools.capabilities import CallContext, Capabilities, Interval, MetricQuery, Metrics, SweepQuery
from tools.contract import COMPUTED, ToolInput
from tools.core.arguments import MetricName, ProductOrAny, TimeRangeText
from tools.core.built_in import bound, read_only
from tools.core.compared_answer import AnswerNotes, Compared, CompareOutput, answer
from tools.core.metric_series import read_metric
from tools.errors import InvalidArguments, ToolError
from tools.output import clean_text
from tools.product_names import ANY_PRODUCT
from tools.products import ProductScope
from tools.signals import Discovered, Signal
from tools.statistics import FinitePoint, Point, finite, relative_change, rounded
from tools.timerange import TimeRange, parse_time_range, range_text, readable_range

MAX_WINDOW = timedelta(hours=24)
LEAST_STEP_S = 60.0
Labelled = Sequence[tuple[Mapping[str, str], Sequence[Point]]]


@dataclass(frozen=True, slots=True)
class Read:
    """Series with their labels. `again` reads the same of another time."""

    series: Labelled
    unit: str | None
    step_s: float
    notes: Sequence[str]
    again: Callable[[Interval], Awaitable[Labelled]]


async def read_one(metrics: Metrics, product: str, metric: str, when: Interval) -> Read:
    """Every series of a product's metric. A step is never finer than the samples lie apart."""
    try:
        found = await metrics.discover([product], when)
        spacing_s = next((s.spacing_s for s in found.signals if metric in (s.name, s.metric)), None)
    except ToolError:  # the comparison itself reports the error
        spacing_s = None
    step_s = max(LEAST_STEP_S, spacing_s or LEAST_STEP_S)

    async def again(interval: Interval) -> Labelled:
        result = await read_metric(metrics, MetricQuery(product, metric, interval, step_s=step_s))
        return [(one.labels, one.points) for one in result.series]

    result = await read_metric(metrics, MetricQuery(product, metric, when, step_s=step_s))
    series = [(one.labels, one.points) for one in result.series]
    return Read(series, result.unit, result.step_s, result.notes, again)


async def read_all(metrics: Metrics, products: Sequence[str], metric: str, when: Interval) -> Read:
    """One series for each product, in one query; of all that are known when none is named.

    Raises InvalidArguments for an unknown metric.
    """
    found = await metrics.discover(products, when)
    signal = _named(found, metric)
    if signal is None:
        names = ", ".join(sorted({one.name for one in found.signals})[:30])
        raise InvalidArguments(f"metric_name: no product here has {metric}; there are: {names}")
    step_s = max(LEAST_STEP_S, signal.spacing_s or LEAST_STEP_S)

    async def again(interval: Interval) -> Labelled:
        swept = await metrics.sweep(SweepQuery([signal], interval, step_s, products))
        return [({"product": one.product}, _points(one.points)) for one in swept.series]

    series = await again(when)
    missing = sorted(set(found.products) - signal.products)
    notes = [f"without this metric: {', '.join(missing)}"] if missing else []
    return Read(series, signal.unit, step_s, notes, again)


def _named(found: Discovered, metric: str) -> Signal | None:
    return next(
        (one for one in found.signals if one.name == metric),
        next((one for one in found.signals if one.metric == metric), None),
    )


def _points(points: Sequence[tuple[float, float]]) -> list[Point]:
    return [(datetime.fromtimestamp(at_s, UTC), value) for at_s, value in points]


BASELINE_LENGTH = timedelta(hours=24)
GUARD_GAP = timedelta(minutes=10)  # an incident begins before anybody asks about it
MAX_NOTES = 10
EARLIER_DAYS = 3


class CompareInput(ToolInput):
    product: ProductOrAny
    metric_name: MetricName
    time_range: TimeRangeText


class CompareToBaseline:
    contract = read_only(
        "compare_to_baseline",
        "Whether a metric is unusual in a time range, against the 24 hours and the hour before"
        " it: z-score, relative change, when the anomaly began. Use to confirm or rule out a"
        " suspicion; with product '*', to see which product it is. Trust it less when coverage"
        " is low or notes say so.",
        (CompareInput, CompareOutput),
        "metrics",
        ProductScope(("product",), narrows=True),
        "investigate",
        timeouts=COMPUTED,
    )

    async def execute(
        self, arguments: CompareInput, call: CallContext, caps: Capabilities
    ) -> CompareOutput:
        when = parse_time_range(arguments.time_range, call.now)
        window = when.interval
        if window.end - window.start > MAX_WINDOW:
            raise InvalidArguments("time_range: at most 24 hours can be compared")
        usual = Interval(window.start - GUARD_GAP - BASELINE_LENGTH, window.start - GUARD_GAP)
        whole = Interval(usual.start, window.end)
        metrics, metric = bound(caps.metrics, "metrics"), arguments.metric_name
        if arguments.product == ANY_PRODUCT:
            read = await read_all(metrics, call.products, metric, whole)
        else:
            read = await read_one(metrics, arguments.product, metric, whole)
            _refuse_raw_counter(metric, read)
        compared = [
            _compared(points, labels, (usual, window), read) for labels, points in read.series
        ]
        worst = max(compared, key=lambda one: one.rank, default=None)
        notes = _notes(worst, read, when)
        earlier = await _earlier_days(worst, read, window) if worst and worst.since else []
        several = compared if arguments.product == ANY_PRODUCT else []
        return answer(
            worst, AnswerNotes(when, range_text(usual), read.unit, notes, earlier), several
        )

    def summarise(self, output: CompareOutput, arguments: CompareInput) -> str:
        name = arguments.metric_name
        if output.window_mean is None or output.window_max is None:
            return f"{name}: no data, {readable_range(arguments.time_range)}"
        if output.baseline_median is None or output.direction is None:
            return f"{name}: insufficient baseline"
        if output.products is not None:
            unusual = [one.product for one in output.products if one.anomalous]
            return f"{name} unusual for {', '.join(unusual[:3]) or 'no product'}"
        if not output.anomalous:
            return f"{name} within baseline"
        score = "" if output.max_z_score is None else f", z {output.max_z_score:.0f}"
        reached = output.window_mean if output.direction == "down" else output.window_max
        change = relative_change(output.baseline_median, reached)
        if change is None or output.baseline_median < 0:
            return f"{name} {output.baseline_median:g} → {reached:g}{score}"
        return f"{name} {reached / output.baseline_median:.1f}x baseline{score}"


def _refuse_raw_counter(metric: str, read: Read) -> None:
    for _labels, points in read.series if metric.endswith("_total") else ():
        values = [value for _, value in finite(points)]
        grows = all(before <= after for before, after in pairwise(values))
        if len(values) > 30 and grows and values[0] < values[-1]:
            raise InvalidArguments(f"metric_name: {metric} is a raw counter; compare a rate")


def _compared(
    points: Sequence[Point],
    labels: Mapping[str, str],
    ranges: tuple[Interval, Interval],
    read: Read,
) -> Compared:
    usual, window = ranges
    known = finite(points)
    day, hour = timedelta(days=1), timedelta(hours=1)
    return Compared(
        labels={clean_text(key): clean_text(value) for key, value in labels.items()},
        usual=baseline(_values(known, usual), BASELINE_LENGTH, read.step_s, read.unit),
        window=_within(known, window),
        hour_before=_values(known, Interval(usual.end - hour, usual.end)),
        yesterday=_values(known, Interval(window.start - day, window.end - day)),
        spacing_s=read.step_s,
    )


async def _earlier_days(worst: Compared, read: Read, window: Interval) -> list[float]:
    days = [timedelta(days=number) for number in range(2, EARLIER_DAYS + 1)]
    found: list[Labelled] = await asyncio.gather(
        *(read.again(Interval(window.start - day, window.end - day)) for day in days)
    )
    values = [worst.yesterday, *(_of_labels(one, worst.labels) for one in found)]
    return [median(one) for one in values if one]


def _of_labels(series: Labelled, labels: Mapping[str, str]) -> list[float]:
    return [
        value
        for known, points in series
        if {clean_text(key): clean_text(text) for key, text in known.items()} == labels
        for _at, value in finite(points)
    ]


def _within(points: Sequence[FinitePoint], interval: Interval) -> list[FinitePoint]:
    return [point for point in points if interval.start <= point[0] < interval.end]


def _values(points: Sequence[FinitePoint], interval: Interval) -> list[float]:
    return [value for _at, value in _within(points, interval)]


def _notes(worst: Compared | None, read: Read, when: TimeRange) -> list[str]:
    notes = [*map(clean_text, read.notes[:MAX_NOTES]), *when.notes]
    if len(read.series) > 1:
        notes.append(f"{len(read.series)} series; the most unusual one is shown")
    if worst is None or not worst.window:
        return [*notes, "no data in the time range"]
    usual = worst.usual
    if not usual.sufficient:
        return [*notes, usual.missing()]
    if usual.constant:
        notes.append("baseline constant: no z-score; any change worth a word counts")
    elif usual.floored:
        notes.append(f"z divides by {rounded(usual.spread):g}, a floor above the spread")
    if usual.coverage < 0.8:
        notes.append("gaps in the baseline")
    if worst.since is not None and worst.hour_before and usual.anomalous(median(worst.hour_before)):
        notes.append("the hour before was unusual too: it began before this time range")
    return notes
