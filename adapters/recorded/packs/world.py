"""A case as the capabilities that tools look through."""

from dataclasses import dataclass

from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.cursor import CursorCodec
from adapters.recorded.packs.cluster import PackedKubernetes
from adapters.recorded.packs.deploys import PackedDeploys
from adapters.recorded.packs.logs import PackedLogs
from adapters.recorded.packs.metrics import PackedMetrics
from adapters.recorded.packs.recording import Recording
from adapters.recorded.packs.traces import PackedTraces
from tools.capabilities import Clock


@dataclass(frozen=True, slots=True)
class PackedWorld:
    """What a case has of each; None: nothing, as where a backend is not configured."""

    logs: PackedLogs | None
    metrics: PackedMetrics | None
    traces: PackedTraces | None
    kubernetes: PackedKubernetes | None
    deploys: PackedDeploys | None


def packed_world(
    recording: Recording, clock: Clock, codec: CursorCodec, conventions: Conventions = SHIPPED
) -> PackedWorld:
    """The capabilities that read one case."""
    lines, objects = recording.lines, recording.objects
    return PackedWorld(
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
