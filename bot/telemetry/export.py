"""Sends spans and metrics to a collector through OpenTelemetry's SDK (the extra `kortex[otel]`).

A turn never waits: one thread redacts and records, the SDK's batch processor sends from its own.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from bot.telemetry import conventions as names
from bot.telemetry.metrics import Metrics
from bot.telemetry.metrics_data import metrics_data
from bot.telemetry.spans import FinishedSpan, Spans, Value
from tools.redactor import RedactionFailed

MOST_WAITING: Final = 4_096  # spans, before they are recorded and again before they are sent
BATCH: Final = 512  # as the specification's batch processor
EVERY_MS: Final = 5_000.0  # OTEL_BSP_SCHEDULE_DELAY's default
LAST_WORDS_S: Final = 3.0
# Of one value, after redaction: collectors take requests of some MB (the Collector's HTTP receiver
# 20 MiB: `max_request_body_size`, config/confighttp).
MAX_VALUE_CHARS: Final = 1_024
MAX_CONTENT_CHARS: Final = 16_384
WITHHELD: Final = "hidden: could not be redacted"
_SHORT: Final = 128
_REMEMBERED: Final = 2_048
_LAST_NS: Final = 2**64 - 1  # in the year 2554
_INT64: Final = range(-(2**63), 2**63)
_KINDS: Final = {kind.name: kind for kind in SpanKind}

Redact = Callable[[str], str]


class Export(Spans):
    """`Spans` that are sent on, and the registry of metrics by the clock."""

    def __init__(
        self,
        spans: SpanExporter,
        metrics: Metrics,
        *,
        resource: Mapping[str, str],
        redact: Redact,
        sample_ratio: float,
        with_content: bool,
        metric_exporter: MetricExporter | None = None,
        metrics_every_s: float = 60.0,
    ) -> None:
        """Start the threads. `redact` may raise RedactionFailed. No `metric_exporter`: spans only."""
        self._metrics = metrics
        self._bound = round(sample_ratio * 2**64)
        self._with_content = with_content
        self._redact = redact
        self._short_text = lru_cache(_REMEMBERED)(self._text)  # names and ids come again and again
        self._resource = Resource({name: self._shown(text) for name, text in resource.items()})
        self._exporters: list[SpanExporter | MetricExporter] = [spans]
        if metric_exporter is not None:
            self._exporters.append(metric_exporter)
        self._processor = BatchSpanProcessor(
            _Counting(spans, metrics), MOST_WAITING, EVERY_MS, BATCH
        )
        self._ids = _GivenIds()
        provider = TracerProvider(
            ALWAYS_ON, self._resource, shutdown_on_exit=False, id_generator=self._ids
        )
        provider.add_span_processor(self._processor)
        self._tracer = provider.get_tracer(names.SCOPE)
        self._room = threading.BoundedSemaphore(MOST_WAITING)
        self._recorder = ThreadPoolExecutor(1, "telemetry")
        self._closing = threading.Event()
        self._sender = threading.Thread(
            target=self._send_metrics, args=(metric_exporter, metrics_every_s), daemon=True
        )
        self._sender.start()

    @property
    def with_content(self) -> bool:
        return self._with_content

    def takes(self, trace_id: bytes) -> bool:
        """By the trace's id, so that every replica keeps the same turns, and keeps them whole."""
        return int.from_bytes(trace_id[8:], "big") < self._bound

    def ended(self, span: FinishedSpan) -> None:
        """Queue it; count it as dropped when too many wait."""
        if self._closing.is_set() or not self._room.acquire(blocking=False):
            self._metrics.telemetry_dropped(1)
        else:
            self._recorder.submit(self._record, span)

    async def aclose(self) -> None:
        """Send what waits, for at most `LAST_WORDS_S`. Threads that hang do not hold up the exit."""
        self._closing.set()
        closing = threading.Thread(target=self._finish, daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, LAST_WORDS_S)
        if closing.is_alive():
            for exporter in self._exporters:
                exporter.shutdown()  # ends its retries

    def _finish(self) -> None:
        self._recorder.shutdown()
        self._processor.shutdown()  # type: ignore[no-untyped-call]
        self._sender.join()

    def _record(self, span: FinishedSpan) -> None:
        """On the one thread of the recorder: the ids belong to the span that starts next."""
        self._room.release()
        trace_id, parent = int.from_bytes(span.trace_id, "big"), Context()
        if span.parent_id:
            parent_id, sampled = int.from_bytes(span.parent_id, "big"), TraceFlags.SAMPLED
            ids = SpanContext(trace_id, parent_id, is_remote=True, trace_flags=TraceFlags(sampled))
            parent = set_span_in_context(NonRecordingSpan(ids), parent)
        self._ids.trace_id, self._ids.span_id = trace_id, int.from_bytes(span.span_id, "big")
        attributes = {name: self._value(value) for name, value in span.attributes.items()}
        for name, text in span.content.items():
            attributes[name] = self._shown(text, MAX_CONTENT_CHARS)
        if span.error:
            attributes[names.ERROR] = self._shown(span.error)
        recorded = self._tracer.start_span(
            self._shown(span.name),
            context=parent,
            kind=_KINDS[span.kind.name],
            attributes=attributes,
            start_time=_on_the_wire(span.started_ns),
        )
        if span.error:
            recorded.set_status(StatusCode.ERROR)
        # A clock may be set back between the two.
        recorded.end(_on_the_wire(max(span.started_ns, span.ended_ns)))

    def _value(self, value: Value) -> bool | int | float | str | Sequence[str]:
        match value:
            case tuple():
                return [self._shown(each) for each in value]
            case bool() | float():
                return value
            case int() if value in _INT64:
                return value
            case _:
                return self._shown(str(value))

    def _shown(self, text: str, most: int = MAX_VALUE_CHARS) -> str:
        return (self._short_text if len(text) <= _SHORT else self._text)(text, most)

    def _text(self, text: str, most: int) -> str:
        try:
            safe = self._redact(text)
        except RedactionFailed:
            return WITHHELD
        return safe[:most].encode("utf-8", "replace").decode()

    def _send_metrics(self, exporter: MetricExporter | None, every_s: float) -> None:
        since_ns = time.time_ns()
        while exporter is not None:
            closing = self._closing.wait(every_s)
            registry, now_ns = self._metrics.registry, time.time_ns()
            exporter.export(metrics_data(registry, self._resource, self._shown, since_ns, now_ns))
            if closing:
                return


class _GivenIds(IdGenerator):
    """The ids of the span that is recorded next: a resumed turn goes on in the same trace."""

    trace_id = 0
    span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class _Counting(SpanExporter):
    def __init__(self, exporter: SpanExporter, metrics: Metrics) -> None:
        self._exporter = exporter
        self._metrics = metrics

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._metrics.telemetry_dropped(len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _on_the_wire(time_ns: int) -> int:
    return min(max(0, time_ns), _LAST_NS)
