"""In-memory capabilities that keep the promises of `tools.capabilities`, and a context to call with."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tools.capabilities import (
    CallContext,
    Capabilities,
    Deploy,
    IncidentQuery,
    Interval,
    LogLine,
    LogPage,
    LogQuery,
    LogsFound,
    LogSweepQuery,
    MetricQuery,
    MetricResult,
    PastIncident,
    Series,
    SweepQuery,
    Swept,
    SweptLogs,
    SweptSeries,
    Trace,
    TraceQuery,
    TraceSample,
    TracesFound,
    TraceSummary,
)
from tools.errors import InvalidArguments
from tools.operation import ProposalDraft, ProposalReceipt
from tools.signals import Discovered, Place, Signal

NOW = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
LEVELS = ("debug", "info", "warn", "error", "fatal")


def call_context(**changes: object) -> CallContext:
    """A call by U1 in #incident-checkout; any field can be set."""
    fields: dict[str, object] = {
        "actor": "U1",
        "team": "T1",
        "channel": "C1",
        "session_id": "s1",
        "session_name": "incident-checkout",
        "turn_id": "turn1",
        "tool_call_id": "call1",
        "purpose": "investigate",
        "now": NOW,
        "products": ("checkout",),
    }
    return CallContext(**{**fields, **changes})  # type: ignore[arg-type]


@dataclass
class FakeClock:
    at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def nanoseconds(at: datetime) -> int:
    """Since the epoch, exactly."""
    return ((at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)) * 1000


def _is_in(ts_ns: int, interval: Interval) -> bool:
    return nanoseconds(interval.start) <= ts_ns < nanoseconds(interval.end)


@dataclass
class FakeLogs:
    """Lines per product, newest first, at most 100 a page; the cursor is a position in the order.

    `failure` is raised instead; `gate`, when set, is awaited first.
    """

    lines: Mapping[str, Sequence[LogLine]] = field(default_factory=dict)
    failure: Exception | None = None
    gate: asyncio.Event | None = None
    queries: list[LogQuery] = field(default_factory=list)
    sweeps: list[LogSweepQuery] = field(default_factory=list)
    notes: Sequence[str] = ()

    async def query(self, query: LogQuery) -> LogPage:
        self.queries.append(query)
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        matching = self._matching(query)
        begin = self._position(query.cursor)
        end = begin + min(query.limit, 100)
        cursor = f"at-{end}" if end < len(matching) else ""
        return LogPage(matching[begin:end], cursor, len(matching))

    async def discover(self, products: Sequence[str], interval: Interval) -> LogsFound:
        wanted = tuple(products) or tuple(self.lines)
        without = tuple(product for product in wanted if product not in self.lines)
        count = len(wanted) - len(without)
        return LogsFound(wanted, without, {"service": count} if count else {})

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        if self.failure is not None:
            raise self.failure
        return [self._counts(query) for query in queries]

    def _counts(self, query: LogSweepQuery) -> Mapping[str, int]:
        asked = (
            LogQuery(one, query.interval, query.filter, query.min_level) for one in query.products
        )
        found = {one.product: len(self._matching(one)) for one in asked}
        return {product: number for product, number in found.items() if number}

    async def sweep(self, query: LogSweepQuery) -> SweptLogs:
        self.sweeps.append(query)
        if self.failure is not None:
            raise self.failure
        found = {
            product: self._matching(
                LogQuery(product, query.interval, query.filter, query.min_level)
            )
            for product in query.products
        }
        counts = {product: len(lines) for product, lines in found.items() if lines}
        kept = {product: found[product][: query.limit] for product in counts}
        return SweptLogs(kept, counts, self.notes)

    def _matching(self, query: LogQuery) -> list[LogLine]:
        lowest = LEVELS.index(query.min_level) if query.min_level else 0
        wanted = query.filter.removeprefix("|=").strip().strip('"`')
        found = [
            line
            for line in self.lines.get(query.product, ())
            if _is_in(line.ts_ns, query.interval)
            and LEVELS.index(line.level or "debug") >= lowest
            and wanted in line.message
        ]
        return sorted(found, key=lambda line: (-line.ts_ns, line.host, line.message))

    @staticmethod
    def _position(cursor: str) -> int:
        if not cursor:
            return 0
        if not cursor.startswith("at-"):
            raise InvalidArguments("cursor: not one of ours")
        return int(cursor.removeprefix("at-"))


@dataclass
class FakeMetrics:
    """Series per (product, metric), cut to the asked interval and labels."""

    series: Mapping[tuple[str, str], Sequence[Series]] = field(default_factory=dict)
    unit: str | None = None
    failure: Exception | None = None
    notes: Sequence[str] = ()
    queries: list[MetricQuery] = field(default_factory=list)
    sweeps: list[SweepQuery] = field(default_factory=list)
    spacing_s: float | None = 60.0

    async def query_range(self, query: MetricQuery) -> MetricResult:
        self.queries.append(query)
        if self.failure is not None:
            raise self.failure
        known = self.series.get((query.product, query.metric))
        step_s = query.step_s or 60.0
        if known is None:
            note = f"no metric {query.metric} exists"
            return MetricResult((), self.unit, step_s, (*self.notes, note))
        found = [
            Series(one.labels, [point for point in one.points if self._inside(point, query)])
            for one in known
            if query.labels.items() <= one.labels.items()
        ]
        return MetricResult(found, self.unit, step_s, self.notes)

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        """Every series of the metric that is the whole query."""
        if self.failure is not None:
            raise self.failure
        found = [
            one for (_, name), several in self.series.items() if name == text for one in several
        ]
        cut = [Series(one.labels, one.points[-1:] if instant else one.points) for one in found]
        return MetricResult(cut, self.unit, step_s or 60.0, self.notes)

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """Gauges by the names they were given."""
        if self.failure is not None:
            raise self.failure
        wanted = tuple(products) or tuple(dict.fromkeys(product for product, _ in self.series))
        names = dict.fromkeys(name for product, name in self.series if product in wanted)
        signals = [
            Signal(
                name,
                "other",
                "gauge",
                name,
                self.unit,
                spacing_s=self.spacing_s,
                places={p: [Place("service", p)] for p in wanted if (p, name) in self.series},
            )
            for name in names
        ]
        there = {product for one in signals for product in one.places}
        return Discovered(signals, wanted, tuple(p for p in wanted if p not in there))

    async def sweep(self, query: SweepQuery) -> Swept:
        self.sweeps.append(query)
        found = [
            SweptSeries(signal.name, product, points)
            for signal in query.signals
            for product in sorted(signal.products & set(query.products or signal.products))
            for one in self.series[product, signal.metric][:1]
            if (points := self._swept(one, query.interval))
        ]
        return Swept(found, query.step_s, self.notes)

    @staticmethod
    def _swept(series: Series, interval: Interval) -> list[tuple[float, float]]:
        return [
            (at.timestamp(), value)
            for at, value in series.points
            if value is not None and interval.start <= at < interval.end
        ]

    @staticmethod
    def _inside(point: tuple[datetime, float | None], query: MetricQuery) -> bool:
        return query.interval.start <= point[0] < query.interval.end


@dataclass
class FakeTraces:
    """Traces by id."""

    traces: Mapping[str, Trace] = field(default_factory=dict)
    failure: Exception | None = None
    summaries: Sequence[TraceSummary] = ()
    notes: Sequence[str] = ()
    searches: list[TraceQuery] = field(default_factory=list)

    async def get(self, trace_id: str) -> Trace | None:
        if self.failure is not None:
            raise self.failure
        return self.traces.get(trace_id)

    async def search(self, query: TraceQuery) -> TracesFound:
        self.searches.append(query)
        if self.failure is not None:
            raise self.failure
        return TracesFound(self.summaries[: query.limit], self.notes)

    async def sample(self, products: Sequence[str], interval: Interval, limit: int) -> TraceSample:
        del interval
        if self.failure is not None:
            raise self.failure
        wanted = set(products)
        through = [t for t in self.traces.values() if wanted & {span.service for span in t.spans}]
        return TraceSample(through[:limit], notes=self.notes)


@dataclass
class FakeDeploys:
    """Deploys, newest first."""

    deploys: Sequence[Deploy] = ()
    failure: Exception | None = None
    unread: int = 0

    def unread_sources(self) -> int:
        return self.unread

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        if self.failure is not None:
            raise self.failure
        found = [
            deploy
            for deploy in self.deploys
            if product in {"*", deploy.product} and interval.start <= deploy.at < interval.end
        ]
        return sorted(found, key=lambda deploy: deploy.at, reverse=True)


@dataclass
class FakeHistory:
    """Incidents with the asked text in their title."""

    incidents: Sequence[PastIncident] = ()
    failure: Exception | None = None
    queries: list[IncidentQuery] = field(default_factory=list)

    async def search(self, query: IncidentQuery) -> Sequence[PastIncident]:
        self.queries.append(query)
        if self.failure is not None:
            raise self.failure
        return [one for one in self.incidents if query.text in one.title][: query.limit]


@dataclass
class FakeProposals:
    """Stores drafts, one per (turn, tool call), where someone `decides`; `known` lists the actions that exist."""

    known: frozenset[str] = frozenset({"rollback-deploy", "restart"})
    awaits: Sequence[str] = ("responder",)
    decides: bool = True
    stored: dict[tuple[str, str], ProposalDraft] = field(default_factory=dict)

    async def propose(self, draft: ProposalDraft, call: CallContext) -> ProposalReceipt:
        if draft.action not in self.known:
            raise InvalidArguments(f"no such action; there are: {', '.join(sorted(self.known))}")
        expires_at = call.now + timedelta(minutes=10)
        if not self.decides:
            return ProposalReceipt("p0", expires_at, self.awaits, posted=False, stored=False)
        key = (call.turn_id, call.tool_call_id)
        self.stored.setdefault(key, draft)
        number = list(self.stored).index(key) + 1
        return ProposalReceipt(f"p{number}", expires_at, self.awaits)


def fake_capabilities(**changes: object) -> Capabilities:
    """Every capability, empty; any can be set, or taken away with None."""
    fields: dict[str, object] = {
        "clock": FakeClock(),
        "logs": FakeLogs(),
        "metrics": FakeMetrics(),
        "traces": FakeTraces(),
        "deploys": FakeDeploys(),
        "incidents": FakeHistory(),
        "proposals": FakeProposals(),
    }
    return Capabilities(**{**fields, **changes})  # type: ignore[arg-type]
