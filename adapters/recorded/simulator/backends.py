"""A simulated incident as what the players of recorded incidents read, and the backends that play it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.observe.cursor import CursorCodec
from adapters.observe.instants import from_ns
from adapters.recorded.packs.recording import RecordedSeries
from adapters.recorded.player.backends import RecordedDeploys
from adapters.recorded.player.cluster import RecordedKubernetes
from adapters.recorded.player.logs import RecordedLogs
from adapters.recorded.player.metrics import RecordedMetrics
from adapters.recorded.player.traces import RecordedTraces
from adapters.recorded.simulator.cluster import SimulatedCluster
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.platform import RecordedAdminInfo, RecordedPlatform
from adapters.recorded.simulator.series import STEP_S
from tools.capabilities import Clock, Interval, LogLine, Trace

_ENVIRONMENT: Final = "prod"


class SimulatedLines:
    """The lines of a dataset, a minute at a time: the requests of one serve all products."""

    label = "service_name"

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.products: Sequence[str] = dataset.products

    def blocks(
        self, products: Sequence[str], start_ns: int, end_ns: int, *, errors: bool
    ) -> Iterator[Mapping[str, Sequence[LogLine]]]:
        """The minutes of the range, the newest first."""
        lines_of = self._dataset.errors if errors else self._dataset.lines
        for minute in reversed(self._dataset.minutes(from_ns(start_ns), from_ns(end_ns))):
            yield {product: lines_of(product, minute) for product in products}


class SimulatedTraces:
    """The traces of a dataset, a minute at a time."""

    calls: Sequence[tuple[str, str]] = ()

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.services: Sequence[str] = dataset.products

    def trace(self, trace_id: str) -> Trace | None:
        return self._dataset.trace(trace_id)

    def blocks(self, interval: Interval) -> Iterator[Sequence[Trace]]:
        """The minutes of the interval, the newest first."""
        minutes = self._dataset.minutes(interval.start, interval.end)
        return (list(self._dataset.traces(minute)) for minute in reversed(minutes))


class SimulatedSeries:
    """The series of a dataset until the clock's now."""

    finest_s = float(STEP_S)

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock
        self.products: Sequence[str] = dataset.products

    def of(self, product: str) -> Sequence[RecordedSeries]:
        """Every series of a product; none of one that the shop does not have."""
        if product not in self.products:
            return ()
        labels = {"service": product, "env": _ENVIRONMENT}
        now = self._clock.now()
        return [
            RecordedSeries(
                metric, labels, None, self._dataset.samples(product, metric, now), "gauge"
            )
            for metric in self._dataset.metrics(product)
        ]

    def all(self) -> Sequence[RecordedSeries]:
        return [one for product in self.products for one in self.of(product)]


@dataclass(frozen=True, slots=True)
class SimulatedBackends:
    dataset: Dataset
    logs: RecordedLogs
    metrics: RecordedMetrics
    traces: RecordedTraces
    deploys: RecordedDeploys
    kubernetes: RecordedKubernetes
    admin: RecordedAdminInfo
    platform: RecordedPlatform


def simulated(dataset: Dataset, clock: Clock, codec: CursorCodec) -> SimulatedBackends:
    return SimulatedBackends(
        dataset,
        RecordedLogs(SimulatedLines(dataset), clock, codec),
        RecordedMetrics(SimulatedSeries(dataset, clock), clock),
        RecordedTraces(SimulatedTraces(dataset), clock),
        RecordedDeploys(lambda: dataset.scenario.deploys, clock, dataset.products),
        RecordedKubernetes(SimulatedCluster(dataset, clock), clock),
        RecordedAdminInfo(dataset, clock),
        RecordedPlatform(dataset, clock),
    )
