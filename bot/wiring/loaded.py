"""A recorded case out of real servers: loaded into them, read through the adapters of production."""

import uuid
from contextlib import AsyncExitStack
from dataclasses import replace

from adapters.observe.conventions import Conventions
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.loki import LokiLogs
from adapters.observe.prometheus import PrometheusMetrics
from adapters.recorded.packs.loading import MARK, load_logs, load_metrics, product_label
from adapters.recorded.packs.recording import Recording
from bot.wiring.observed import World, backend_client


async def with_metrics_at(
    url: str, recording: Recording, world: World, conventions: Conventions, stack: AsyncExitStack
) -> World:
    """The case's metrics in that VictoriaMetrics. Raises ConfigurationError, NotLoaded."""
    if recording.series is None:
        return world
    mark = uuid.uuid4().hex
    client = backend_client(url, "", "--metrics-url", stack)
    client.params = client.params.set("extra_filters[]", f'{{{MARK}="{mark}"}}')
    await load_metrics(client, recording.series, mark)
    metrics = PrometheusMetrics(client, world.clock, conventions=conventions)
    return replace(world, observed=replace(world.observed, metrics=metrics))


async def with_logs_at(
    url: str, recording: Recording, world: World, stack: AsyncExitStack
) -> World:
    """The case's log lines in that Loki. Raises ConfigurationError, NotLoaded."""
    if recording.lines is None:
        return world
    mark = uuid.uuid4().hex
    client = backend_client(url, "", "--logs-url", stack)
    await load_logs(client, recording.lines, mark)
    label = product_label(recording.lines, recording.case.products)
    selector = f'{{{label}="$product", {MARK}="{mark}"}}'
    logs = LokiLogs(client, UnsealedCodec(), selector)
    return replace(world, observed=replace(world.observed, logs=logs))
