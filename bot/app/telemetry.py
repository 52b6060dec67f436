"""Opens telemetry from `[otel]`. Without an endpoint, OpenTelemetry is not imported."""

import uuid
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from bot.chat.traced import TurnTraces
from bot.settings.otel import OtelSettings
from bot.settings.reading import needing_extra
from bot.telemetry import conventions as names
from bot.telemetry.metrics import Metrics
from bot.telemetry.spans import NO_SPANS
from tools.redactor import Redactor, redacted_json

if TYPE_CHECKING:
    from adapters.otel.exporters import Collector


def open_telemetry(
    otel: OtelSettings, redactor: Redactor, metrics: Metrics, stack: AsyncExitStack
) -> TurnTraces:
    """What traces turns. The end of the stack sends what still waits, for a few seconds.

    Reads certificates. Raises ConfigurationError.
    """
    if not otel.endpoint:
        return TurnTraces(NO_SPANS)
    collector = make_collector(otel)
    from bot.telemetry.export import Export

    export = Export(
        collector.spans(),
        metrics,
        resource={
            names.SERVICE: names.SCOPE,
            names.SERVICE_VERSION: version("kortex"),
            names.SERVICE_INSTANCE: uuid.uuid4().hex,  # each process counts from its own beginning
            **otel.resource,
        },
        redact=partial(redacted_json, redactor=redactor),
        sample_ratio=otel.sample_ratio,
        with_content=otel.content,
        metric_exporter=collector.metrics() if otel.metrics else None,
        metrics_every_s=otel.metrics_interval.total_seconds(),
    )
    stack.push_async_callback(export.aclose)
    return TurnTraces(export)


def make_collector(otel: OtelSettings) -> "Collector":
    """The collector of `[otel]`. Raises ConfigurationError without the extra."""
    with needing_extra("otel", "otel.endpoint"):
        from adapters.otel.exporters import Collector

    return Collector(
        otel.endpoint, {name: token.get_secret_value() for name, token in otel.headers.items()}
    )
