"""The metrics of a recorded incident."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

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
from adapters.recorded.player.resampling import Points, quantile_of, rate_of, spacing_of
from adapters.recorded.player.signals import SeriesSource, discovered, swept
from tools.capabilities import Clock, Interval, MetricQuery, MetricResult, Series, SweepQuery, Swept
from tools.signals import Discovered

_MOST_NAMES: Final = 20


class RecordedMetrics:
    """As a real backend, under the names of the source. Nothing later than the clock's now."""

    def __init__(
        self, source: SeriesSource, clock: Clock, conventions: Conventions = SHIPPED
    ) -> None:
        self._source = source
        self._clock = clock
        self._conventions = conventions

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """Every metric of these products that has a sample in that time."""
        check_order(interval)
        return discovered(self._source, self._conventions, products, interval)

    async def sweep(self, query: SweepQuery) -> Swept:
        check_order(query.interval)
        return await swept(self._source, query, self._until(query.interval))

    async def query_range(self, query: MetricQuery) -> MetricResult:
        """Counters as rates, a quantile estimated from its histogram where it has no series.

        Other metrics: the last value at or before each step, no older than the source's spacing.
        """
        check_order(query.interval)
        own = self._source.of(query.product)
        named = _having(own, query.metric, query.labels)
        step_s, note = step_for(query.interval, query.step_s, self._source.finest_s)
        notes = [note] if note else []
        interval = self._until(query.interval)
        names = {one.name for one in own}
        is_counter = is_counter_by_name(
            query.metric, names, self._conventions.of(query.metric).type
        )
        found = [_stepped(one, interval, step_s, is_counter=is_counter) for one in named]
        quantile = QUANTILE_NAME.fullmatch(query.metric)
        buckets = f"{quantile[1]}_bucket" if quantile else ""
        if quantile and query.metric not in names and buckets in names:
            of_all = _having(own, buckets, query.labels)
            share = float(f"0.{quantile[2]}")
            found = [_series({}, quantile_of(of_all, share, interval, step_s))]
            notes.append(f"estimated from the histogram {buckets}, over all its series")
        found = [one for one in found if one.points]
        if not found:
            notes.append(_absence(query, own, self._source.products))
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
        named = _having(self._source.all(), metric, labels)
        step, note = step_for(interval, step_s, self._source.finest_s)
        found = []
        for one in named:
            series = _stepped(one, self._until(interval), step, is_counter=False)
            if series.points:
                points = series.points[-1:] if instant else series.points
                found.append(Series(series.labels, points))
        notes = [note] if note else []
        if not found:
            notes.append(f"nothing is called {metric} with these labels in this time range")
        return MetricResult(tuple(found), unit_of(metric), step, tuple(notes))

    def _until(self, interval: Interval) -> Interval:
        now = self._clock.now() + timedelta(microseconds=1)
        return Interval(interval.start, min(interval.end, max(interval.start, now)))


def _having(
    series: Sequence[RecordedSeries], metric: str, labels: Mapping[str, str]
) -> list[RecordedSeries]:
    return [one for one in series if one.name == metric and labels.items() <= one.labels.items()]


def _series(labels: Mapping[str, str], points: Points) -> Series:
    return Series(labels, [(datetime.fromtimestamp(at, UTC), value) for at, value in points])


def _stepped(one: RecordedSeries, interval: Interval, step_s: float, *, is_counter: bool) -> Series:
    if is_counter:
        return _series(one.labels, rate_of(one.points, interval, step_s))
    points, spacing_s = one.points, spacing_of(one.points)
    known_until = points[-1][0] + spacing_s if points else 0.0
    stepped: list[tuple[datetime, float | None]] = []
    at, index, value_at, value = interval.start, 0, -math.inf, 0.0
    while at < interval.end and at.timestamp() < known_until:
        while index < len(points) and points[index][0] <= at.timestamp():
            value_at, value = points[index]
            index += 1
        if at.timestamp() - value_at < max(step_s, 1.5 * spacing_s):
            stepped.append((at.astimezone(UTC), value))
        at += timedelta(seconds=step_s)
    return Series(one.labels, stepped)


def _absence(query: MetricQuery, own: Sequence[RecordedSeries], products: Sequence[str]) -> str:
    if not own:
        return f"no metric names {query.product}; there are: {', '.join(products[:_MOST_NAMES])}"
    of_name = [one for one in own if one.name == query.metric]
    if not of_name:
        known = ", ".join(sorted({one.name for one in own}))
        return f"metric {query.metric} does not exist for product {query.product}; it has: {known}"
    if not _having(of_name, query.metric, query.labels):
        have = ", ".join(f"{name}={value}" for name, value in of_name[0].labels.items())
        return f"metric {query.metric} exists, but no series has these labels; one has: {have}"
    times = [at for one in of_name for at, _ in one.points]
    covered = (
        [datetime.fromtimestamp(at, UTC).isoformat() for at in (min(times), max(times))]
        if times
        else []
    )
    return (
        f"metric {query.metric} exists, but this time range has no samples: "
        f"recorded data covers {' to '.join(covered) or 'no time'}"
    )
