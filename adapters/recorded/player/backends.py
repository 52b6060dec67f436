"""A case as the capabilities that tools look through."""

from dataclasses import dataclass

from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.cursor import CursorCodec
from adapters.recorded.packs.recording import Recording
from adapters.recorded.player.cluster import PackedKubernetes
from adapters.recorded.player.deploys import PackedDeploys
from adapters.recorded.player.logs import PackedLogs
from adapters.recorded.player.metrics import PackedMetrics
from adapters.recorded.player.traces import PackedTraces
from tools.capabilities import Clock


@dataclass(frozen=True, slots=True)
class RecordedBackends:
    """What a case has of each; None: nothing, as where a backend is not configured."""

    logs: PackedLogs | None
    metrics: PackedMetrics | None
    traces: PackedTraces | None
    kubernetes: PackedKubernetes | None
    deploys: PackedDeploys | None


def backends_of(
    recording: Recording, clock: Clock, codec: CursorCodec, conventions: Conventions = SHIPPED
) -> RecordedBackends:
    """The capabilities that read one case."""
    lines, objects = recording.lines, recording.objects
    return RecordedBackends(
        logs=None if lines is None else PackedLogs(lines, codec),
        metrics=None if recording.series is None else PackedMetrics(recording.series, conventions),
        traces=PackedTraces(recording.spans or {}, recording.edges)
        if recording.spans is not None or recording.edges
        else None,
        kubernetes=None
        if objects is None
        else PackedKubernetes(objects, recording.events, lines or (), clock),
        deploys=None if recording.deploys is None else PackedDeploys(recording.deploys),
    )
