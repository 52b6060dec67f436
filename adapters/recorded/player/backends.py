"""A recorded incident as the backends that tools ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.cursor import CursorCodec
from adapters.recorded.packs.recording import Recording
from adapters.recorded.player.cluster import PackCluster, RecordedKubernetes
from adapters.recorded.player.logs import PackLines, RecordedLogs, check_product
from adapters.recorded.player.metrics import RecordedMetrics
from adapters.recorded.player.signals import PackSeries
from adapters.recorded.player.traces import PackTraces, RecordedTraces
from tools.capabilities import Clock, Deploy, Interval


class RecordedDeploys:
    """Deploys until the clock's now."""

    def __init__(
        self, deploys: Callable[[], Sequence[Deploy]], clock: Clock, products: Sequence[str] = ()
    ) -> None:
        self._deploys = deploys
        self._clock = clock
        self._products = products

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        """Newest first, with start in [start, end). Raises InvalidArguments.

        Where the source names its `products`, another name is refused.
        """
        if self._products and product != "*":
            check_product(product, self._products)
        now = self._clock.now()
        found = [
            one
            for one in self._deploys()
            if product in {"*", one.product}
            and interval.start <= one.at < interval.end
            and one.at <= now
        ]
        return sorted(found, key=lambda one: one.at, reverse=True)

    def unread_sources(self) -> int:
        """None: a recording is whole."""
        return 0


@dataclass(frozen=True, slots=True)
class RecordedBackends:
    """What an incident has of each; None: nothing, as where a backend is not configured."""

    logs: RecordedLogs | None
    metrics: RecordedMetrics | None
    traces: RecordedTraces | None
    kubernetes: RecordedKubernetes | None
    deploys: RecordedDeploys | None


def backends_of(
    recording: Recording, clock: Clock, codec: CursorCodec, conventions: Conventions = SHIPPED
) -> RecordedBackends:
    lines, series, deploys = recording.lines, recording.series, recording.deploys
    spans, objects = recording.spans, recording.objects
    logs = metrics = traces = kubernetes = None
    if lines is not None:
        logs = RecordedLogs(PackLines(lines), clock, codec)
    if series is not None:
        metrics = RecordedMetrics(PackSeries(series), clock, conventions)
    if spans is not None or recording.edges:
        traces = RecordedTraces(PackTraces(spans or {}, recording.edges), clock)
    if objects is not None:
        cluster = PackCluster(objects, recording.events, lines or ())
        kubernetes = RecordedKubernetes(cluster, clock)
    return RecordedBackends(
        logs,
        metrics,
        traces,
        kubernetes,
        None if deploys is None else RecordedDeploys(lambda: deploys, clock),
    )
