"""Spans and metrics as OTLP's protobuf (https://opentelemetry.io/docs/specs/otlp/, 1.7).

Needs the extra `kortex[otel]`: imported only where a collector is configured. Whatever a value is,
it becomes one that the wire can hold; what cannot be redacted is withheld.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_service
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
)
from opentelemetry.proto.metrics.v1 import metrics_pb2 as wire
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from bot.telemetry import conventions as names
from bot.telemetry.spans import FinishedSpan, Value
from tools.redactor import RedactionFailed

# Of one value, after redaction: collectors take requests of some MB (the Collector's HTTP receiver
# 20 MiB: `max_request_body_size`, config/confighttp).
MAX_VALUE_CHARS: Final = 1_024
MAX_CONTENT_CHARS: Final = 16_384
WITHHELD: Final = "withheld: could not be redacted"
_SHORT: Final = 128
_REMEMBERED: Final = 2_048
_LAST_NS: Final = 2**64 - 1  # in the year 2554
_INT64: Final = range(-(2**63), 2**63)
_CUMULATIVE: Final = wire.AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE

Redact = Callable[[str], str]


class Encoder:
    """Puts requests together. `redact` may raise RedactionFailed."""

    def __init__(self, resource: Mapping[str, str], redact: Redact) -> None:
        self._redact = redact
        self._text_seen = lru_cache(_REMEMBERED)(self._text)  # names and ids come again and again
        attributes = [self._pair(name, value) for name, value in resource.items()]
        self._resource = Resource(attributes=attributes)
        self._scope = InstrumentationScope(name=names.SCOPE)

    def spans(self, ended: Sequence[FinishedSpan]) -> bytes:
        """The body of a request to `/v1/traces`."""
        scoped = trace_pb2.ScopeSpans(scope=self._scope, spans=map(self._span, ended))
        found = trace_pb2.ResourceSpans(resource=self._resource, scope_spans=[scoped])
        request = trace_service.ExportTraceServiceRequest(resource_spans=[found])
        return bytes(request.SerializeToString())

    def metrics(self, registry: CollectorRegistry, since_ns: int, now_ns: int) -> bytes:
        """The body of a request to `/v1/metrics`: the registry as it stands. Reads /proc."""
        told = [self._metric(_named(each), since_ns, now_ns) for each in registry.collect()]
        scoped = wire.ScopeMetrics(scope=self._scope, metrics=[m for m in told if m is not None])
        found = wire.ResourceMetrics(resource=self._resource, scope_metrics=[scoped])
        request = metrics_service.ExportMetricsServiceRequest(resource_metrics=[found])
        return bytes(request.SerializeToString())

    def _span(self, span: FinishedSpan) -> trace_pb2.Span:
        status = trace_pb2.Status.StatusCode.STATUS_CODE_ERROR if span.error else None
        attributes = [self._pair(name, value) for name, value in span.attributes.items()]
        attributes += [
            self._pair(name, text, MAX_CONTENT_CHARS) for name, text in span.content.items()
        ]
        if span.error:
            attributes.append(self._pair(names.ERROR, span.error))
        return trace_pb2.Span(
            trace_id=span.trace_id,
            span_id=span.span_id,
            parent_span_id=span.parent_id,
            name=self._shown(span.name, MAX_VALUE_CHARS),
            kind=trace_pb2.Span.SpanKind.ValueType(span.kind.value),
            start_time_unix_nano=_on_the_wire(span.started_ns),
            # A clock that was set back between the two.
            end_time_unix_nano=_on_the_wire(max(span.started_ns, span.ended_ns)),
            attributes=attributes,
            status=trace_pb2.Status(code=status) if status else None,
        )

    def _pair(self, name: str, value: Value, most: int = MAX_VALUE_CHARS) -> KeyValue:
        return KeyValue(key=name, value=self._value(value, most))

    def _value(self, value: Value, most: int) -> AnyValue:
        match value:
            case bool():
                return AnyValue(bool_value=value)
            case int() if value in _INT64:
                return AnyValue(int_value=value)
            case float():
                return AnyValue(double_value=value)
            case tuple():
                each = [self._value(one, most) for one in value]
                return AnyValue(array_value=ArrayValue(values=each))
            case _:
                return AnyValue(string_value=self._shown(str(value), most))

    def _shown(self, text: str, most: int) -> str:
        return (self._text_seen if len(text) <= _SHORT else self._text)(text, most)

    def _text(self, text: str, most: int) -> str:
        """Redacted, then cut, then without half a surrogate pair."""
        try:
            safe = self._redact(text)
        except RedactionFailed:
            return WITHHELD
        return safe[:most].encode("utf-8", "replace").decode()

    def _metric(self, family: Metric, since_ns: int, now_ns: int) -> wire.Metric | None:
        described = wire.Metric(
            name=family.name, description=family.documentation, unit=family.unit
        )
        points = [s for s in family.samples if isfinite(s.value)]
        match family.type:
            case "counter":
                total = [self._number(s, since_ns, now_ns) for s in points if _is(s, "_total")]
                described.sum.CopyFrom(
                    wire.Sum(
                        data_points=total, aggregation_temporality=_CUMULATIVE, is_monotonic=True
                    )
                )
            case "gauge":
                level = [self._number(s, 0, now_ns) for s in points]
                described.gauge.CopyFrom(wire.Gauge(data_points=level))
            case "histogram":
                counted = self._histograms(points, since_ns, now_ns)
                described.histogram.CopyFrom(
                    wire.Histogram(data_points=counted, aggregation_temporality=_CUMULATIVE)
                )
            case _:
                return None  # of the process itself: `python_info` and its like
        return described

    def _labels(self, labels: Iterable[tuple[str, str]]) -> list[KeyValue]:
        return [self._pair(name, value) for name, value in labels if name != "le"]

    def _number(self, sample: Sample, since_ns: int, now_ns: int) -> wire.NumberDataPoint:
        return wire.NumberDataPoint(
            attributes=self._labels(sample.labels.items()),
            start_time_unix_nano=since_ns,
            time_unix_nano=now_ns,
            as_double=sample.value,
        )

    def _histograms(
        self, samples: Sequence[Sample], since_ns: int, now_ns: int
    ) -> list[wire.HistogramDataPoint]:
        series: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
        for sample in samples:
            key = tuple(sorted((n, v) for n, v in sample.labels.items() if n != "le"))
            series.setdefault(key, []).append(sample)
        return [
            wire.HistogramDataPoint(
                attributes=self._labels(labels),
                start_time_unix_nano=since_ns,
                time_unix_nano=now_ns,
                count=int(max((s.value for s in found if _is(s, "_count")), default=0)),
                sum=sum(s.value for s in found if _is(s, "_sum")),
                explicit_bounds=[bound for bound, _ in _buckets(found) if isfinite(bound)],
                bucket_counts=[number for _, number in _buckets(found)],
            )
            for labels, found in series.items()
        ]


def _named(family: Metric) -> Metric:
    """As the conventions name it and its labels, where they do."""
    if family.name not in names.METRICS:
        return family
    name, unit = names.METRICS[family.name]
    # Made anew: its constructor insists that a unit ends the name.
    named = Metric(name, family.documentation, family.type)
    named.unit = unit
    named.samples = [each._replace(labels=_as_conventions(each.labels)) for each in family.samples]
    return named


def _as_conventions(labels: Mapping[str, str]) -> dict[str, str]:
    told = {names.METRIC_LABELS.get(name, name): value for name, value in labels.items()}
    provider = told.get(names.PROVIDER, "")
    return {
        **told,
        names.OPERATION: names.CHAT,
        names.PROVIDER: names.PROVIDERS.get(provider, provider),
    }


def _on_the_wire(time_ns: int) -> int:
    return min(max(0, time_ns), _LAST_NS)


def _is(sample: Sample, suffix: str) -> bool:
    return sample.name.endswith(suffix)


def _buckets(samples: Sequence[Sample]) -> list[tuple[float, int]]:
    """Upper bounds, and how many lie between each and the one before: Prometheus counts up to it."""
    found = sorted((float(s.labels["le"]), int(s.value)) for s in samples if _is(s, "_bucket"))
    before = [0, *(count for _, count in found)]
    return [(bound, count - less) for (bound, count), less in zip(found, before, strict=False)]


def refused_in(answer: bytes, *, of_metrics: bool) -> int:
    """How many a collector says it did not take; 0 where it says nothing that can be read."""
    try:
        if of_metrics:
            told = metrics_service.ExportMetricsServiceResponse.FromString(answer)
            return max(0, int(told.partial_success.rejected_data_points))
        spans = trace_service.ExportTraceServiceResponse.FromString(answer)
        return max(0, int(spans.partial_success.rejected_spans))
    except DecodeError:
        return 0
