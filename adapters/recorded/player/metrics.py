"""The metrics of a case, under the names that its source gave them."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median

from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.instants import check_order
from adapters.observe.metric_shape import (
    QUANTILE_NAME,
    is_counter_by_name,
    step_for,
    unit_of,
    unit_read,
)
from adapters.observe.selector_query import name_and_labels
from adapters.recorded.packs.recording import RecordedSeries
from adapters.recorded.player.resampling import Points, quantile_of, rate_of
from adapters.recorded.player.signals import PackedSignals
from tools.capabilities import (
    Interval,
    MetricQuery,
    MetricResult,
    Series,
    SweepQuery,
    Swept,
)
from tools.signals import Discovered

_USUAL_SPACING_S = 60.0


class PackedMetrics:
    """Series belong to the product that one of their labels names."""

    def __init__(
        self, series: Sequence[RecordedSeries], conventions: Conventions = SHIPPED
    ) -> None:
        self._conventions = conventions
        self._series: dict[str, list[RecordedSeries]] = {}
        for one in series:
            for owner in dict.fromkeys(one.labels.values()):
                self._series.setdefault(owner, []).append(one)
        self._signals = PackedSignals(self._series, conventions)

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """Every metric of these products that has a sample in that time."""
        check_order(interval)
        return self._signals.discovered(products, interval)

    async def sweep(self, query: SweepQuery) -> Swept:
        """Every signal for every product; the loop goes on between them."""
        check_order(query.interval)
        return await self._signals.swept(query)

    async def query_range(self, query: MetricQuery) -> MetricResult:
        """As on a real backend: counters as rates, a quantile's name estimated from its histogram,
        else the last value at or before each step, no older than the source's own spacing.
        """
        check_order(query.interval)
        own = self._series.get(query.product, ())
        named = _having(own, query.metric, query.labels)
        step_s, note = step_for(query.interval, query.step_s, 15.0)
        notes = [note] if note else []
        names = {one.name for one in own}
        is_counter = is_counter_by_name(
            query.metric, names, self._conventions.of(query.metric).type
        )
        if is_counter:
            found = [
                _series(one.labels, rate_of(one.points, query.interval, step_s)) for one in named
            ]
        else:
            spacing_s = max((spacing_of(one.points) for one in named), default=_USUAL_SPACING_S)
            found = [
                Series(one.labels, _stepped(one.points, query, step_s, spacing_s)) for one in named
            ]
        quantile = QUANTILE_NAME.fullmatch(query.metric)
        buckets = f"{quantile[1]}_bucket" if quantile else ""
        if quantile and query.metric not in names and buckets in names:
            of_all = _having(own, buckets, query.labels)
            share = float(f"0.{quantile[2]}")
            found = [_series({}, quantile_of(of_all, share, query.interval, step_s))]
            notes.append(f"estimated from the histogram {buckets}, over all its series")
        found = [one for one in found if one.points]
        if not found:
            notes.append(_absence(query, sorted(names), query.metric in names))
        unit = next((one.unit for one in named if one.unit and not is_counter), None)
        return MetricResult(
            tuple(found),
            unit or unit_read(query.metric, is_counter=is_counter),
            step_s,
            tuple(notes),
        )

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        """A selector: its series. Raises InvalidArguments for more."""
        check_order(interval)
        metric, labels = name_and_labels(text)
        step, note = step_for(interval, step_s, 15.0)
        query = MetricQuery("", metric, interval, labels, step)
        unique = {id(one): one for series in self._series.values() for one in series}
        found = []
        for one in unique.values():
            if one.name == metric and labels.items() <= one.labels.items():
                points = _stepped(one.points, query, step, spacing_of(one.points))
                if points:
                    found.append(Series(one.labels, points[-1:] if instant else points))
        notes = [note] if note else []
        if not found:
            notes.append(f"nothing is called {metric} with these labels in this time range")
        return MetricResult(tuple(found), unit_of(metric), step, tuple(notes))


def _having(
    series: Sequence[RecordedSeries], metric: str, labels: Mapping[str, str]
) -> list[RecordedSeries]:
    named = [one for one in series if one.name == metric]
    return [one for one in named if labels.items() <= one.labels.items()]


def _series(labels: Mapping[str, str], points: Points) -> Series:
    return Series(labels, [(datetime.fromtimestamp(at, UTC), value) for at, value in points])


def spacing_of(points: Sequence[tuple[float, float]]) -> float:
    """The usual time between two samples in seconds."""
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    return median(gaps) if gaps else _USUAL_SPACING_S


def _stepped(
    points: Sequence[tuple[float, float]], query: MetricQuery, step_s: float, spacing_s: float
) -> list[tuple[datetime, float | None]]:
    start, end = query.interval.start, query.interval.end
    known_until = points[-1][0] + spacing_s if points else 0.0
    stepped: list[tuple[datetime, float | None]] = []
    at, index, value_at, value = start, 0, -math.inf, 0.0
    while at < end and at.timestamp() < known_until:
        while index < len(points) and points[index][0] <= at.timestamp():
            value_at, value = points[index]
            index += 1
        if at.timestamp() - value_at < max(step_s, 1.5 * spacing_s):
            stepped.append((at.astimezone(UTC), value))
        at += timedelta(seconds=step_s)
    return stepped


def _absence(query: MetricQuery, known: Sequence[str], exists: bool) -> str:
    if exists:
        return f"metric {query.metric} exists, but not with these labels or in this time range"
    if not known:
        return f"no metric names {query.product}"
    return (
        f"metric {query.metric} does not exist for product {query.product}; "
        f"it has: {', '.join(known)}"
    )
