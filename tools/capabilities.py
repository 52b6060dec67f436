"""The interfaces through which tools reach the outside, and the values that cross them.

Adapters implement these; the composition root binds them; a tool names the ones it needs.
Credentials are resolved inside an implementation, never passed through here.
All instants are aware UTC datetimes; intervals are half-open [start, end).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar, cast

from pydantic import JsonValue

from tools.attached import AttachedFile
from tools.call_limits import NOTHING_SPENT, Spent
from tools.cluster_objects import Kubernetes
from tools.cluster_offer import ClusterOffer, Patterns
from tools.error_issues import ErrorIssues
from tools.operation import Operations, ProposalDraft, ProposalReceipt
from tools.platform import Application, PlatformResource, PlatformStats, Workflow
from tools.port import Port
from tools.products import Reading
from tools.signals import Discovered, Signal

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Interval:
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class LogQuery:
    """`limit` at most 100, enforced again in the adapter; `cursor` continues an earlier page."""

    product: str
    interval: Interval
    filter: str = ""  # plain text or a LogQL pipeline such as `|= "timeout"`
    min_level: str = ""  # debug < info < warn < error < fatal; empty is all
    limit: int = 100
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `ts_ns` is nanoseconds since the epoch (backends tie below a microsecond)."""

    ts_ns: int
    level: str
    host: str
    message: str
    trace_id: str = ""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Newest first. `next_cursor` is empty on the last page; `total_matches` None when not known.

    `notes` say what of the query could not be done.
    """

    lines: Sequence[LogLine]
    next_cursor: str = ""
    total_matches: int | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LogsFound:
    """The products with log lines. `labels` counts how many each label found.

    `without` are the requested products without lines.
    """

    products: Sequence[str]
    without: Sequence[str] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    requests: int = 0


@dataclass(frozen=True, slots=True)
class LogSweepQuery:
    """The lines of many products at once: of each at most some `limit` shared out among them.

    `counts` is what Logs.count said of this query, None where it was not asked.
    """

    products: Sequence[str]
    interval: Interval
    min_level: str = ""
    filter: str = ""
    limit: int = 10_000
    counts: Mapping[str, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SweptLogs:
    """Lines by product, newest first. `counts` are of all matching lines, read or not.

    A product with a higher count than lines was cut. `requests` is 0 for a cached answer.
    """

    lines: Mapping[str, Sequence[LogLine]]
    counts: Mapping[str, int]
    notes: Sequence[str] = ()
    requests: int = 0


class Logs(Protocol):
    """Reads log lines.

    Every method raises UpstreamFailed, InvalidArguments (a bad cursor or filter),
    CapabilityUnavailable.
    """

    async def query(self, query: LogQuery) -> LogPage: ...

    async def discover(self, products: Sequence[str], interval: Interval) -> LogsFound:
        """Which of these have lines; all that are known when none is named."""
        ...

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        """How many lines match, by product, of each query; those without any are left out."""
        ...

    async def sweep(self, query: LogSweepQuery) -> SweptLogs: ...


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """`step_s` None lets the adapter choose one that fits the backend's point limit."""

    product: str
    metric: str
    interval: Interval
    labels: Mapping[str, str] = field(default_factory=dict)
    step_s: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One series. Values that are not finite are None. `labels` lacks the metric's own name."""

    labels: Mapping[str, str]
    points: Sequence[tuple[datetime, float | None]]


@dataclass(frozen=True, slots=True)
class MetricResult:
    """`unit` from metadata or the name's suffix, None when unknown; `notes` are backend warnings.

    When there are no series, `notes` says whether the metric exists at all.
    """

    series: Sequence[Series]
    unit: str | None
    step_s: float
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SweepQuery:
    """Signals of a discovery, for many products at once. `products` empty: all that have them."""

    signals: Sequence[Signal]
    interval: Interval
    step_s: float
    products: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SweptSeries:
    """A signal of a product: finite values in time order, at seconds since the epoch."""

    signal: str
    product: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found; a signal of a product without a value is not there. `requests` made."""

    series: Sequence[SweptSeries]
    step_s: float
    notes: Sequence[str] = ()
    requests: int = 0


class Metrics(Protocol):
    """Reads metric series.

    Every method raises UpstreamFailed, InvalidArguments, CapabilityUnavailable.
    """

    async def query_range(self, query: MetricQuery) -> MetricResult: ...

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        """A query in the backend's own language; `instant` is its value at the interval's end."""
        ...

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """What can be read of these products, or of all that the backend knows when none is named.

        A few requests, however many products; the answer is remembered for minutes.
        """
        ...

    async def sweep(self, query: SweepQuery) -> Swept:
        """Every signal for every product, one value a step, in a few requests."""
        ...


@dataclass(frozen=True, slots=True)
class Span:
    """One span. `start_us` since the epoch; `parent_id` empty for a root; `status` ok|error|unset."""

    span_id: str
    parent_id: str
    service: str
    operation: str
    start_us: int
    duration_us: int
    status: str = "unset"
    message: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace, in no particular order."""

    trace_id: str
    spans: Sequence[Span]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """Traces with a span of the product's that began in the interval, and is all of the rest:
    of that operation, that long at least, failed. `limit` at most 100.
    """

    product: str
    interval: Interval
    operation: str = ""
    min_duration_ms: float = 0.0
    errors: bool = False
    limit: int = 20


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One trace found. `spans` and `failed` None when the backend does not count them.

    `service` and `operation` are of its root. `calls` are (caller, called) services, empty where
    the backend gives no spans.
    """

    trace_id: str
    start_us: int
    duration_us: int
    service: str = ""
    operation: str = ""
    services: Sequence[str] = ()
    spans: int | None = None
    failed: int | None = None
    calls: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class TracesFound:
    """The slowest first. `notes` say what of the query the backend could not do."""

    traces: Sequence[TraceSummary]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TraceSample:
    """Whole traces, the newest first. `calls` are further known (caller, called) pairs.

    `more`: the backend has further ones that were not read.
    """

    traces: Sequence[Trace]
    calls: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    requests: int = 0
    more: bool = False


class Traces(Protocol):
    """Looks up traces. Every method raises InvalidArguments, UpstreamFailed, CapabilityUnavailable."""

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown."""
        ...

    async def search(self, query: TraceQuery) -> TracesFound:
        """The matching traces. An unknown product has none, with a note if possible."""
        ...

    async def sample(self, products: Sequence[str], interval: Interval, limit: int) -> TraceSample:
        """The newest that pass through any of these, in a few requests; the first named first."""
        ...


@dataclass(frozen=True, slots=True)
class Deploy:
    """One deploy of a product. `status` ok|failed|rolled_back|running."""

    product: str
    version: str
    at: datetime
    actor: str = ""
    host: str = ""
    commit: str = ""
    status: str = "ok"
    previous_version: str = ""
    duration_s: float | None = None


class Deploys(Protocol):
    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        """Newest first. `product` "*" means every product. Raises CapabilityUnavailable."""
        ...


class DeployRecords(Deploys, Protocol):
    def unread_sources(self) -> int:
        """How many sources cannot be read now. Their names may be another team's."""
        ...


@dataclass(frozen=True, slots=True)
class IncidentQuery:
    """`channel` is the asking channel: results of other channels are not found.

    Empty product: any.
    """

    text: str
    channel: str
    product: str = ""
    interval: Interval | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class PastIncident:
    """One past incident. `closed_at` None while it is open.

    `is_own_answer`: an earlier answer of Kortex instead: the question is its title, the answer its
    resolution, and it is unconfirmed.
    """

    id: str
    title: str
    opened_at: datetime
    closed_at: datetime | None = None
    product: str = ""
    severity: str = ""
    resolution: str = ""
    is_own_answer: bool = False


class IncidentHistory(Protocol):
    async def search(self, query: IncidentQuery) -> Sequence[PastIncident]:
        """The best first. Raises InvalidArguments (no word to search by), CapabilityUnavailable.

        Neither incidents nor earlier answers take the other's half of the limit.
        """
        ...


class AdminInfo(Protocol):
    async def info(self, product: str, call: "CallContext") -> dict[str, JsonValue]:
        """The envelope, asked for in the asker's name.

        Raises InvalidArguments (no such product), UpstreamFailed, CapabilityUnavailable.
        """
        ...


class Platform(Protocol):
    """Reads a developer platform over the user's own connection.

    Every method raises InvalidArguments (no such application or workflow), UpstreamFailed, and
    CapabilityUnavailable (no permitted connection, not reachable).
    """

    async def applications(self, call: "CallContext") -> Sequence[Application]: ...

    async def application(self, name: str, call: "CallContext") -> Application: ...

    async def workflows(
        self, application: str, status: str, call: "CallContext"
    ) -> Sequence[Workflow]:
        """Newest first; an empty filter matches all."""
        ...

    async def workflow(self, workflow_id: str, call: "CallContext") -> Workflow: ...

    async def resources(
        self, application: str, kind: str, call: "CallContext"
    ) -> Sequence[PlatformResource]:
        """Of every application; an empty filter matches all."""
        ...

    async def stats(self, call: "CallContext") -> PlatformStats: ...


class Proposals(Protocol):
    """Stores a proposal and nothing else. Nothing behind this interface executes an action."""

    async def propose(self, draft: ProposalDraft, call: "CallContext") -> ProposalReceipt:
        """Idempotent per (turn, tool call). Raises InvalidArguments listing what exists."""
        ...


class Clock(Protocol):
    def now(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class CallContext:
    """The caller, the place and the purpose of a call. Opaque ids only: no credential may ever be a
    field here.

    `channel` is a name, empty when it could not be read; `channel_id` stays when it is renamed.
    """

    actor: str
    team: str
    channel: str
    session_id: str
    session_name: str
    turn_id: str
    tool_call_id: str
    purpose: str
    now: datetime  # relative time ranges are resolved against this, once per turn
    products: tuple[str, ...] = ()
    connection_ids: frozenset[str] = frozenset()  # what this request may use
    untrusted_read: bool = False  # the turn has already read tool output
    spent: Spent = NOTHING_SPENT  # of the turn, before this call
    channel_id: str = ""
    roles: frozenset[str] = frozenset()  # of the asker, among those that the policy names
    reading: Reading = Reading.ALL  # whether `products` bound what tools read
    elsewhere: tuple[str, ...] = ()  # products of other channels, which no call may name then
    files: tuple[AttachedFile, ...] = ()  # attached to the question, in their order


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the composition root has bound; None is not configured."""

    clock: Clock
    logs: Logs | None = None
    metrics: Metrics | None = None
    traces: Traces | None = None
    errors: ErrorIssues | None = None
    deploys: DeployRecords | None = None
    rollouts: Deploys | None = None
    incidents: IncidentHistory | None = None
    kubernetes: Kubernetes | None = None
    admin: AdminInfo | None = None
    platform: Platform | None = None
    offer: ClusterOffer | None = None
    patterns: Patterns | None = None
    operations: Operations | None = None
    proposals: Proposals | None = None
    more: Mapping[str, object] = field(default_factory=dict)  # by the name of a tool's own port

    def of(self, port: Port[P]) -> P:
        """The implementation of a tool's own port. The runner refuses the call without one."""
        return cast("P", self.more[port.name])
