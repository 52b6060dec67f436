"""From `[otel]` to what is told to a collector; without it nothing of it is imported."""

import uuid
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Final

from adapters.otlp_http import OtlpHttp
from bot.chat.traced import TurnTraces
from bot.settings.otel import OtelSettings
from bot.settings.reading import ConfigurationError
from bot.telemetry import conventions as names
from bot.telemetry.metrics import Metrics
from bot.telemetry.spans import NO_SPANS
from bot.upkeep.jobs import Job
from tools.redactor import Redactor

TICK_S: Final = 5.0  # how late a span may leave: OTEL_BSP_SCHEDULE_DELAY's default
MISSING: Final = (
    "otel.endpoint: needs what is not installed; `pip install 'kortex[otel]'`, or `make setup-otel`"
)


def open_telemetry(
    otel: OtelSettings, redactor: Redactor, metrics: Metrics, stack: AsyncExitStack
) -> tuple[TurnTraces, dict[str, Job]]:
    """What traces turns, and what the clock has to do for it; the stack's end says the last words.

    Raises ConfigurationError.
    """
    if not otel.endpoint:
        return TurnTraces(NO_SPANS), {}
    try:
        from bot.telemetry.export import Export  # the extra's packages
        from bot.telemetry.otlp import Encoder
    except ImportError as error:
        raise ConfigurationError(MISSING) from error
    headers = {name: token.get_secret_value() for name, token in otel.headers.items()}
    collector = OtlpHttp(otel.endpoint, headers)
    stack.push_async_callback(collector.aclose)
    resource = {
        names.SERVICE: names.SCOPE,
        names.SERVICE_VERSION: version("kortex"),
        names.SERVICE_INSTANCE: uuid.uuid4().hex,  # each process counts from its own beginning
        **otel.resource,
    }
    export = Export(
        collector,
        Encoder(resource, redactor.redact),
        metrics,
        sample_ratio=otel.sample_ratio,
        with_content=otel.content,
        metrics_every_s=otel.metrics_interval.total_seconds() if otel.metrics else None,
    )
    stack.push_async_callback(export.aclose)
    return TurnTraces(export), {"telemetry": Job(TICK_S, export.run)}
