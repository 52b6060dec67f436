"""A recorded case as the world that a conversation looks at, at the moment of its question.

Its metrics and logs may be loaded into real servers, and read through the adapters of production."""

import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime

from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.loki import LokiLogs
from adapters.observe.prometheus import PrometheusMetrics
from adapters.recorded.packs.recording import Recording
from adapters.recorded.packs.server_import import MARK, load_logs, load_metrics, product_label
from adapters.recorded.player.backends import backends_of
from bot.app.backend_selection import Observed, RecordedWorld
from bot.app.http_access import backend_client
from bot.settings.access import RouteSettings


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """Always the same moment."""

    at: datetime

    def now(self) -> datetime:
        return self.at


def world_of(recording: Recording, conventions: Conventions = SHIPPED) -> RecordedWorld:
    """What the case has; history and a platform are in no case."""
    clock = StoppedClock(recording.case.now)
    seen = backends_of(recording, clock, UnsealedCodec(), conventions)
    observed = Observed(
        logs=seen.logs,
        metrics=seen.metrics,
        traces=seen.traces,
        deploys=seen.deploys,
        kubernetes=seen.kubernetes,
    )
    return RecordedWorld(clock, observed)


async def with_metrics_at(
    url: str,
    recording: Recording,
    world: RecordedWorld,
    conventions: Conventions,
    stack: AsyncExitStack,
) -> RecordedWorld:
    """The case's metrics in that VictoriaMetrics. Raises ConfigurationError, NotLoaded."""
    if recording.series is None:
        return world
    mark = uuid.uuid4().hex
    client = backend_client(url, RouteSettings(), "--metrics-url", stack)
    client.params = client.params.set("extra_filters[]", f'{{{MARK}="{mark}"}}')
    await load_metrics(client, recording.series, mark)
    metrics = PrometheusMetrics(client, world.clock, conventions=conventions)
    return replace(world, observed=replace(world.observed, metrics=metrics))


async def with_logs_at(
    url: str, recording: Recording, world: RecordedWorld, stack: AsyncExitStack
) -> RecordedWorld:
    """The case's log lines in that Loki. Raises ConfigurationError, NotLoaded."""
    if recording.lines is None:
        return world
    mark = uuid.uuid4().hex
    client = backend_client(url, RouteSettings(), "--logs-url", stack)
    await load_logs(client, recording.lines, mark)
    label = product_label(recording.lines, recording.case.products)
    selector = f'{{{label}="$product", {MARK}="{mark}"}}'
    logs = LokiLogs(client, UnsealedCodec(), selector)
    return replace(world, observed=replace(world.observed, logs=logs))
