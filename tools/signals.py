"""Signals of products in a metrics backend, each with its role and its reading.

A signal is one metric read one way (a counter's rate, a histogram's 99th percentile, a gauge as it
is), for every product that has it. The adapters know what each metric means; here are the values
that tools work with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

Role = Literal[
    "traffic",
    "errors",
    "latency",
    "cpu",
    "memory",
    "disk",
    "pool",
    "queue",
    "restarts",
    "network",
    "other",
]
ROLES: tuple[Role, ...] = get_args(Role)

# gauge: as it is. rate: per second. increase: growth within a step. changes: how often it became
# another value within a step. quantile: the 99th percentile of a histogram. mean: sum over count.
# ratio: of two gauges. rate_ratio: of two counters' rates.
Reading = Literal["gauge", "rate", "increase", "changes", "quantile", "mean", "ratio", "rate_ratio"]

# The direction of trouble. Traffic may be trouble either way.
Worse = Literal["up", "down", "either"]

# How the series of one product become one.
Combine = Literal["sum", "max", "min", "avg"]

USUAL_SPACING_S = 60.0  # Prometheus's default scrape_interval, where nothing was learned

MAIN, USUAL, DETAIL, UNKNOWN = 1, 2, 3, 4  # how well a signal represents its role, the best first


@dataclass(frozen=True, slots=True)
class Place:
    """The selector of a product's series: `label` is `value`, or a pod's name derived from it.

    `namespace` is empty, or the namespace that they are also in.
    """

    label: str
    value: str
    pods: bool = False
    namespace: str = ""
    namespace_label: str = ""


MetricType = Literal["counter", "gauge", "histogram", "summary", ""]  # "": the backend does not say


@dataclass(frozen=True, slots=True)
class Metric:
    """An existing name of any meaning, and where each product has it."""

    name: str
    type: MetricType = ""
    unit: str | None = None
    places: Mapping[str, Sequence[Place]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signal:
    """One metric in one reading. `name` is unique within a discovery.

    `metric` is the backend's name, without the suffix of a histogram; `over` the divisor of a
    ratio. `where` and `over_where` are matchers that go with them, as PromQL. `unit` is that of the
    values as they are read, None when unknown. `spacing_s` is the time between two samples, None
    when it could not be learned. `limit` is the value (in seconds, ratios or pieces) where it
    becomes bad for any product; None without such a value. If lower is worse, it is the value of an
    outage. `is_inferred`: labels or values show the role; the name says nothing.
    """

    name: str
    role: Role
    reading: Reading
    metric: str
    unit: str | None = None
    worse: Worse = "either"
    rank: int = UNKNOWN
    combine: Combine = "max"
    where: str = ""
    over: str = ""
    over_where: str = ""
    spacing_s: float | None = None
    limit: float | None = None
    is_inferred: bool = False
    places: Mapping[str, Sequence[Place]] = field(default_factory=dict)

    @property
    def products(self) -> frozenset[str]:
        return frozenset(self.places)


@dataclass(frozen=True, slots=True)
class Discovered:
    """The existing signals. `without` are the products without any; `requests` were made.

    `labels` counts the products that each label found. `metrics` are all names, also those without
    a meaning for a product.
    """

    signals: Sequence[Signal]
    products: Sequence[str]
    without: Sequence[str] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    requests: int = 0
    metrics: Sequence[Metric] = ()

    def of(self, product: str) -> Sequence[Signal]:
        """A product's signals, by role, the most important of each first."""
        have = [signal for signal in self.signals if product in signal.places]
        return sorted(have, key=lambda one: (ROLES.index(one.role), one.rank, one.name))

    def best(self, product: str, role: Role) -> Signal | None:
        """The signal that represents a role best, None when the product has none."""
        return next((one for one in self.of(product) if one.role == role), None)


def rate_window_s(step_s: float, spacing_s: float | None) -> float:
    """Over how many seconds a rate is read: Grafana's $__rate_interval.

    No sample between two steps is skipped, and a window always holds the two samples that a rate needs,
    even when a scrape or two failed.
    """
    spacing = spacing_s or USUAL_SPACING_S
    return max(step_s + spacing, 4 * spacing)
