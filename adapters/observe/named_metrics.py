"""The Metrics port over a backend that is asked by name and labels: Datadog, CloudWatch."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from adapters.observe.conventions import SHIPPED, Conventions, written_alike
from adapters.observe.instants import check_order
from adapters.observe.metric_shape import MAX_STEPS, QUANTILE_NAME, step_for, unit_read
from adapters.observe.metric_source import Catalogue, How, MetricSource, Row, SeriesSelection
from adapters.observe.named_sweep import NamedSweep, can_be_read, values_of
from adapters.observe.prometheus import absence_note, staleness_notes
from adapters.observe.remembered import Remembered
from adapters.observe.selector_query import name_and_labels
from adapters.observe.signal_map import KnownMetric, signals_of
from tools.capabilities import (
    Clock,
    Interval,
    MetricQuery,
    MetricResult,
    Series,
    SweepQuery,
    Swept,
)
from tools.errors import InvalidArguments
from tools.signals import DETAIL, Discovered, Metric, MetricType, Signal

_REMEMBERED_FOR: Final = timedelta(minutes=5)
_INSTANT_WITHIN: Final = timedelta(minutes=10)  # AWS's own metrics come every five
# Names of counts that are no counters: a share, a state, or a rate already.
_NO_COUNTER: Final = re.compile(
    r"ratio|rate|percent|pct|per_second|host_?count|status_?check|average|utili[sz]ation|p\d\d"
)


class NamedMetrics:
    """Metric series of a source; counters are read per second."""

    def __init__(
        self, source: MetricSource, clock: Clock, conventions: Conventions = SHIPPED
    ) -> None:
        self._source = source
        self._clock = clock
        self._conventions = conventions
        self._catalogues: Remembered[Catalogue] = Remembered(_REMEMBERED_FOR)

    async def query_range(self, query: MetricQuery) -> MetricResult:
        """One value a step, before end. Counters are read per second."""
        check_order(query.interval)
        if not query.product.strip():
            raise InvalidArguments("name one product")
        finest_s = self._source.finest_s(query.interval, self._clock.now())
        step_s, step_note = step_for(query.interval, query.step_s, finest_s)
        metric, how = await self._metric_of(query.metric, query.interval)
        places = await self._source.places(metric, query.product, query.interval)
        asked = [SeriesSelection(metric, how, *values_of(places), query.labels)] if places else []
        series, unit = await self._series(asked, query.interval, step_s)
        if unit is None:
            unit = unit_read(query.metric, is_counter=how == "rate")
        notes = [step_note] if step_note else []
        if series:
            notes.extend(staleness_notes(series, query.interval, step_s, self._clock.now()))
        else:
            notes.append(await self._absence(replace(query, metric=metric)))
        return MetricResult(tuple(series), unit, step_s, tuple(notes))

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        """A selector alone: `name{label="value"}`. Raises InvalidArguments for more."""
        check_order(interval)
        try:
            metric, labels = name_and_labels(text)
        except InvalidArguments as error:
            raise InvalidArguments(
                f"query: {self._source.name} has no PromQL; only a selector is accepted, such as "
                'name{service="checkout"}. Use get_metrics for one metric of a product, '
                "find_metrics for the names, compare_to_baseline for anomalies"
            ) from error
        now = self._clock.now()
        if instant:
            end = min(interval.end, now) + timedelta(seconds=1)
            interval = Interval(end - _INSTANT_WITHIN, end)
        step, note = step_for(interval, step_s, self._source.finest_s(interval, now))
        metric, how = await self._metric_of(metric, interval)
        series, unit = await self._series(
            [SeriesSelection(metric, how, labels=labels)], interval, step
        )
        if instant:
            series = [Series(one.labels, one.points[-1:]) for one in series]
        notes = [note] if note and not instant else []
        if not series:
            notes.append("the query selects nothing: a name or a label may be wrong")
        return MetricResult(tuple(series), unit, step, tuple(notes))

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """What these have, of what the source can read."""
        found = await self._catalogue(products, interval)
        signals = [
            replace(signal, spacing_s=found.spacing_s.get(signal.metric))
            for signal in self._signals(found.known)
        ]
        there = {product for signal in signals for product in signal.places}
        labels: dict[str, set[str]] = defaultdict(set)
        for signal in signals:
            for product, places in signal.places.items():
                labels[places[0].label].add(product)
        return Discovered(
            signals,
            found.products,
            tuple(product for product in found.products if product not in there),
            {label: len(of) for label, of in sorted(labels.items())},
            tuple(found.notes),
            found.requests,
            [Metric(one.metric, one.type, one.unit, one.places) for one in found.known],
        )

    async def sweep(self, query: SweepQuery) -> Swept:
        check_order(query.interval)
        range_s = (query.interval.end - query.interval.start).total_seconds()
        if query.step_s <= 0 or range_s / query.step_s > MAX_STEPS:
            raise InvalidArguments(f"step_s: at most {MAX_STEPS} steps fit a range")
        step_s = max(query.step_s, self._source.finest_s(query.interval, self._clock.now()))
        sweep = NamedSweep(query.signals, query.products)
        if not sweep.asked:
            return Swept((), step_s)
        found = await self._source.read(sweep.asked, query.interval, step_s)
        series = sweep.series(self._before_now(found.rows, query.interval))
        return Swept(series, step_s, requests=found.requests)

    async def _catalogue(self, products: Sequence[str], interval: Interval) -> Catalogue:
        check_order(interval)
        about = int(interval.end.timestamp() // _REMEMBERED_FOR.total_seconds())
        wanted = tuple(sorted(set(products)))
        return await self._catalogues.get(
            (wanted, about),
            lambda: self._source.catalogue(tuple(dict.fromkeys(products)), interval),
        )

    def _signals(self, known: Sequence[KnownMetric]) -> list[Signal]:
        typed = [replace(one, type=one.type or self._type_of(one.metric)) for one in known]
        signals: list[Signal] = []
        for signal in signals_of(typed, self._conventions):
            if not can_be_read(signal):
                continue
            signals.append(signal)
            tail = signal.role == "latency" and signal.reading == "gauge" and not signal.where
            if self._source.quantiles and tail and not QUANTILE_NAME.fullmatch(signal.metric):
                signals[-1] = replace(signal, rank=min(DETAIL, signal.rank + 1))
                signals.append(replace(signal, name=f"{signal.metric}_p99"))
        return [replace(signal, where="", over_where="") for signal in signals]

    def _type_of(self, metric: str) -> MetricType:
        meaning = self._conventions.of(metric)
        if meaning.type or meaning.reading or meaning.role not in ("traffic", "errors", "restarts"):
            return ""
        shares = meaning.combine != "sum" or _NO_COUNTER.search(written_alike(metric))
        return "" if shares else "counter"

    async def _metric_of(self, name: str, interval: Interval) -> tuple[str, How]:
        tail = QUANTILE_NAME.fullmatch(name)
        if self._source.quantiles and tail is not None and tail[2] == "99":
            known = (await self._catalogue([], interval)).known
            if not any(one.metric == name for one in known):
                return tail[1], "p99"
        signal = next(iter(self._signals([KnownMetric(name, {})])), None)
        return name, "rate" if signal is not None and signal.reading == "rate" else "avg"

    async def _series(
        self, asked: Sequence[SeriesSelection], interval: Interval, step_s: float
    ) -> tuple[list[Series], str | None]:
        if not asked:
            return [], None
        found = await self._source.read(asked, interval, step_s)
        rows = self._before_now(found.rows, interval)
        series = [
            Series(
                row.labels,
                tuple((datetime.fromtimestamp(at, UTC), value) for at, value in row.points),
            )
            for row in sorted(rows, key=lambda row: sorted(row.labels.items()))
            if row.points
        ]
        return series, next((row.unit for row in rows if row.unit), None)

    def _before_now(self, rows: Sequence[Row], interval: Interval) -> list[Row]:
        start_s = interval.start.timestamp()
        end_s = min(interval.end, self._clock.now() + timedelta(seconds=1)).timestamp()
        return [
            replace(row, points=[(at, v) for at, v in row.points if start_s <= at < end_s])
            for row in rows
        ]

    async def _absence(self, query: MetricQuery) -> str:
        found = await self._catalogue([query.product], query.interval)
        names = [one.metric for one in found.known]
        products = () if names else (await self._catalogue([], query.interval)).products
        return absence_note(query, "", names, products)
