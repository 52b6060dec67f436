"""The interface of a metrics backend without PromQL; `named_metrics` builds the Metrics port on it.

A source selects series by a metric's name and equal labels, with at most one value a step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from adapters.observe.signal_map import KnownMetric
from tools.capabilities import Interval
from tools.signals import Place

# How samples become one value a step. Across series: avg, max, min, total of their averages in the
# step. Of all samples: their sum, their rate (the sum per second), their 99th percentile.
How = Literal["avg", "max", "min", "total", "sum", "rate", "p99"]


@dataclass(frozen=True, slots=True)
class SeriesSelection:
    """Series of a metric whose `label` is one of `values`, with the other `labels`.

    An empty `label` selects all of them.
    """

    metric: str
    how: How
    label: str = ""
    values: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One series that answers the asked of that number. `points` in time order, in seconds."""

    asked: int
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """All that was found, and in how many requests."""

    rows: Sequence[Row]
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What exists of products. `spacing_s` is the time between samples by metric, where it is known."""

    known: Sequence[KnownMetric]
    products: Sequence[str]
    spacing_s: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()
    requests: int = 0


class MetricSource(Protocol):
    """One backend. Every method raises UpstreamFailed, CapabilityUnavailable, InvalidArguments."""

    @property
    def name(self) -> str: ...

    @property
    def quantiles(self) -> bool:
        """Whether it has p99 of any metric."""
        ...

    def finest_s(self, interval: Interval, now: datetime) -> float:
        """The finest step that it has of that time."""
        ...

    async def catalogue(self, products: Sequence[str], interval: Interval) -> Catalogue:
        """What these have; all that there are when none is named."""
        ...

    async def places(self, metric: str, product: str, interval: Interval) -> Sequence[Place]:
        """Where a product's series of a metric would be; none where that is known not to be."""
        ...

    async def read(
        self, asked: Sequence[SeriesSelection], interval: Interval, step_s: float
    ) -> Rows:
        """The series of all of them, in few requests. Steps may be aligned to the clock."""
        ...
