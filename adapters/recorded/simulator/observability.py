"""Logs, metrics, traces and deploys of a simulated incident, behind the same interfaces as real ones.

Nothing later than the clock's now is ever returned, so the incident unfolds while people watch.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from adapters.observe.cursor import (
    CursorCodec,
    Position,
    advanced,
    line_hash,
    page_size,
    resume,
    suspend,
)
from adapters.observe.instants import check_order, to_ns
from adapters.observe.levels import at_least, normalized
from adapters.observe.line_filter import line_test
from adapters.observe.metric_shape import step_for, unit_of
from adapters.observe.selector_query import name_and_labels
from adapters.observe.trace_ids import trace_id_of
from adapters.recorded.simulator.cluster import RecordedKubernetes
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.platform import RecordedAdminInfo, RecordedPlatform
from adapters.recorded.simulator.searches import (
    found_traces,
    products_with_lines,
    sampled_traces,
    swept_logs,
)
from adapters.recorded.simulator.series import STEP_S
from adapters.recorded.simulator.signals import discovered, swept
from tools.capabilities import (
    Clock,
    Deploy,
    Interval,
    LogLine,
    LogPage,
    LogQuery,
    LogsFound,
    LogSweepQuery,
    MetricQuery,
    MetricResult,
    Series,
    SweepQuery,
    Swept,
    SweptLogs,
    Trace,
    TraceQuery,
    TraceSample,
    TracesFound,
)
from tools.errors import InvalidArguments
from tools.signals import Discovered

_MINUTES_BETWEEN_YIELDS = 8  # some 5 ms of work
_ENVIRONMENT = "prod"


def _check_product(dataset: Dataset, product: str) -> None:
    if product not in dataset.products:
        raise InvalidArguments(
            f"unknown product {product!r}; products are: {', '.join(dataset.products)}"
        )


class RecordedLogs:
    """Log lines of one incident."""

    def __init__(self, dataset: Dataset, clock: Clock, codec: CursorCodec) -> None:
        self._dataset = dataset
        self._clock = clock
        self._codec = codec

    async def query(self, query: LogQuery) -> LogPage:
        """Newest first. The first page counts all matches; later ones read only what they need."""
        _check_product(self._dataset, query.product)
        position = resume(query, self._codec)
        if position.last_ns is None:
            end_ns = min(position.end_ns, to_ns(self._clock.now()) + 1)
            position = replace(position, end_ns=end_ns)
        matches = _Matches(self._dataset, query, position)
        size = page_size(query)
        lines = await matches.take(size + 1)
        total = position.total
        if total is None:
            total = len(lines) + await matches.count_rest()
        if len(lines) <= size:
            return LogPage(tuple(lines), total_matches=total)
        page = lines[:size]
        cursor = suspend(query, advanced(position, _hashed(page), total), self._codec)
        return LogPage(tuple(page), cursor, total)

    async def discover(self, products: Sequence[str], interval: Interval) -> LogsFound:
        """Which of these products have lines."""
        return products_with_lines(self._dataset, products, interval)

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        """How many lines match, by product, of each query."""
        return [(await self.sweep(query)).counts for query in queries]

    async def sweep(self, query: LogSweepQuery) -> SweptLogs:
        """The lines of many products."""
        return await swept_logs(self._dataset, self._clock, query)


def _hashed(page: Sequence[LogLine]) -> list[tuple[int, str]]:
    return [(line.ts_ns, line_hash(line.host, line.message)) for line in page]


class _Matches:
    """The lines that match a query from a position on, newest first, read a minute at a time."""

    def __init__(self, dataset: Dataset, query: LogQuery, position: Position) -> None:
        self._dataset = dataset
        self._product = query.product
        self._position = position
        self._test = line_test(query.filter)
        self._levels = at_least(query.min_level) if query.min_level else None
        newest_ns = position.end_ns if position.last_ns is None else position.last_ns + 1
        start = datetime.fromtimestamp(position.start_ns // 1_000_000_000, UTC)
        end = datetime.fromtimestamp(-(-newest_ns // 1_000_000_000), UTC)
        self._minutes: Iterator[int] = iter(reversed(dataset.minutes(start, end)))
        self._spare: list[LogLine] = []
        self._newest_ns = newest_ns
        # Lines are in a fixed order, so those delivered at the last timestamp are the first ones.
        self._skip_at_last = position.count

    async def take(self, count: int) -> list[LogLine]:
        taken: list[LogLine] = []
        for number, minute in enumerate(self._minutes, start=1):
            taken.extend(self._of_minute(minute))
            if len(taken) >= count:
                break
            if number % _MINUTES_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)
        self._spare = taken[count:]
        return taken[:count]

    async def count_rest(self) -> int:
        count = len(self._spare)
        for number, minute in enumerate(self._minutes, start=1):
            count += sum(1 for _ in self._of_minute(minute))
            if number % _MINUTES_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)
        return count

    def _of_minute(self, minute: int) -> Iterator[LogLine]:
        for line in self._dataset.lines(self._product, minute):
            if not self._position.start_ns <= line.ts_ns < self._newest_ns or not self._fits(line):
                continue
            if line.ts_ns == self._position.last_ns and self._skip_at_last:
                self._skip_at_last -= 1
                continue
            yield line

    def _fits(self, line: LogLine) -> bool:
        if self._levels is not None and normalized(line.level) not in self._levels:
            return False
        return self._test(line.message)


class RecordedMetrics:
    """Metric series of one incident, sampled every 60 s."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    async def query_range(self, query: MetricQuery) -> MetricResult:
        """One series per product and metric. Points lie on start + k x step, before end and now."""
        _check_product(self._dataset, query.product)
        check_order(query.interval)
        step_s, note = step_for(query.interval, query.step_s, float(STEP_S))
        notes = [note] if note else []
        labels = {"service": query.product, "env": _ENVIRONMENT}
        problem = self._problem(query, labels)
        if problem:
            return MetricResult((), None, step_s, (*notes, problem))
        points = tuple(self._points(query, step_s))
        if not points:
            notes.append(
                f"metric {query.metric} exists, but this time range has no samples: recorded data "
                f"covers {self._dataset.start.isoformat()} to {self._clock.now().isoformat()}"
            )
            return MetricResult((), unit_of(query.metric), step_s, tuple(notes))
        series = Series(labels, points)
        return MetricResult((series,), unit_of(query.metric), step_s, tuple(notes))

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        """A selector: its series of every product. Raises InvalidArguments for more."""
        metric, labels = name_and_labels(text)
        step, note = step_for(interval, step_s, float(STEP_S))
        wanted = [labels["service"]] if "service" in labels else self._dataset.products
        having = [product for product in wanted if metric in self._dataset.metrics(product)]
        series: list[Series] = []
        for product in having:
            one = await self.query_range(MetricQuery(product, metric, interval, labels, step))
            series += [
                Series(each.labels, each.points[-1:] if instant else each.points)
                for each in one.series
            ]
        notes = [note] if note else []
        if not series:
            notes.append(f"nothing is called {metric} with these labels")
        return MetricResult(tuple(series), unit_of(metric), step, tuple(notes))

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """What the recorded products have."""
        return discovered(self._dataset, products, interval)

    async def sweep(self, query: SweepQuery) -> Swept:
        """Every signal for every product."""
        return await swept(self._dataset, self._clock, query)

    def _problem(self, query: MetricQuery, labels: dict[str, str]) -> str:
        known = self._dataset.metrics(query.product)
        if query.metric not in known:
            return (
                f"metric {query.metric} does not exist for product {query.product}; "
                f"it has: {', '.join(known)}"
            )
        if any(labels.get(name) != value for name, value in query.labels.items()):
            have = ", ".join(f"{name}={value}" for name, value in labels.items())
            return f"metric {query.metric} exists, but no series has these labels; it has: {have}"
        return ""

    def _points(self, query: MetricQuery, step_s: float) -> Iterator[tuple[datetime, float | None]]:
        at, step = query.interval.start, timedelta(seconds=step_s)
        now = self._clock.now()
        end = min(query.interval.end, self._dataset.end)
        while at < end and at <= now:
            value = self._dataset.value(query.product, query.metric, at)
            if value is not None:
                yield at, value
            at += step


class RecordedTraces:
    """Traces of one incident."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown or not finished yet. Raises InvalidArguments: no trace id."""
        trace = self._dataset.trace(trace_id_of(trace_id))
        if trace is None:
            return None
        ended_us = max(span.start_us + span.duration_us for span in trace.spans)
        return trace if ended_us * 1000 <= to_ns(self._clock.now()) else None

    async def search(self, query: TraceQuery) -> TracesFound:
        """Those that fit, the slowest first."""
        return await found_traces(self._dataset, self._clock, query)

    async def sample(self, products: Sequence[str], interval: Interval, limit: int) -> TraceSample:
        """The newest first."""
        return await sampled_traces(self._dataset, self._clock, products, interval, limit)


class RecordedDeploys:
    """Deploys of one incident."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        """Newest first, with start in [start, end). Raises InvalidArguments: unknown product."""
        if product != "*":
            _check_product(self._dataset, product)
        now = self._clock.now()
        found = [
            deploy
            for deploy in self._dataset.scenario.deploys
            if product in {"*", deploy.product}
            and interval.start <= deploy.at < interval.end
            and deploy.at <= now
        ]
        return sorted(found, key=lambda deploy: deploy.at, reverse=True)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The capabilities of one incident."""

    dataset: Dataset
    logs: RecordedLogs
    metrics: RecordedMetrics
    traces: RecordedTraces
    deploys: RecordedDeploys
    kubernetes: RecordedKubernetes
    admin: RecordedAdminInfo
    platform: RecordedPlatform


def recorded(dataset: Dataset, clock: Clock, codec: CursorCodec) -> Recorded:
    """The capabilities that read one dataset."""
    return Recorded(
        dataset,
        RecordedLogs(dataset, clock, codec),
        RecordedMetrics(dataset, clock),
        RecordedTraces(dataset, clock),
        RecordedDeploys(dataset, clock),
        RecordedKubernetes(dataset, clock),
        RecordedAdminInfo(dataset, clock),
        RecordedPlatform(dataset, clock),
    )
