"""The series that a comparison is made of: of one product each as it is, of many one for each."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tools.capabilities import Interval, MetricQuery, Metrics, SweepQuery
from tools.errors import InvalidArguments, ToolError
from tools.signals import Discovered, Signal
from tools.statistics import Point

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
        result = await metrics.query_range(MetricQuery(product, metric, interval, step_s=step_s))
        return [(one.labels, one.points) for one in result.series]

    result = await metrics.query_range(MetricQuery(product, metric, when, step_s=step_s))
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
