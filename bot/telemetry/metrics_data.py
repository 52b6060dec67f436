"""The registry of metrics as the SDK's data points, named as the semantic conventions name them."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as SentMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from bot.telemetry import conventions as names

_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE


def metrics_data(
    registry: CollectorRegistry,
    resource: Resource,
    redact: Callable[[str], str],
    since_ns: int,
    now_ns: int,
) -> MetricsData:
    """Every counter, gauge and histogram of the registry, its labels redacted. Reads /proc."""
    families = list(registry.collect())
    for family in families:
        family.samples = [
            sample._replace(labels={name: redact(value) for name, value in sample.labels.items()})
            for sample in family.samples
        ]
    sent = [_metric(family, since_ns, now_ns) for family in families]
    scope = InstrumentationScope(names.SCOPE)
    scoped = ScopeMetrics(scope, [metric for metric in sent if metric is not None], "")
    return MetricsData([ResourceMetrics(resource, [scoped], "")])


def _metric(family: Metric, since_ns: int, now_ns: int) -> SentMetric | None:
    points = [sample for sample in family.samples if isfinite(sample.value)]
    renamed = family.name in names.METRICS

    def numbers(samples: Sequence[Sample], since: int) -> list[NumberDataPoint]:
        return [NumberDataPoint(_labels(s, renamed), since, now_ns, s.value) for s in samples]

    data: Sum | Gauge | Histogram
    match family.type:
        case "counter":
            totals = [s for s in points if s.name.endswith("_total")]
            data = Sum(numbers(totals, since_ns), _CUMULATIVE, is_monotonic=True)
        case "gauge":
            data = Gauge(numbers(points, 0))
        case "histogram":
            data = Histogram(_histograms(points, renamed, since_ns, now_ns), _CUMULATIVE)
        case _:
            return None  # of the process itself: `python_info` and its like
    name, unit = names.METRICS.get(family.name, (family.name, family.unit))
    return SentMetric(name, family.documentation, unit, data)


def _histograms(
    samples: Sequence[Sample], renamed: bool, since_ns: int, now_ns: int
) -> list[HistogramDataPoint]:
    series: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in samples:
        key = tuple(sorted((n, v) for n, v in sample.labels.items() if n != "le"))
        series.setdefault(key, []).append(sample)
    return [_histogram(found, renamed, since_ns, now_ns) for found in series.values()]


def _histogram(
    samples: Sequence[Sample], renamed: bool, since_ns: int, now_ns: int
) -> HistogramDataPoint:
    buckets = sorted(
        (float(s.labels["le"]), int(s.value)) for s in samples if s.name.endswith("_bucket")
    )
    below = [0, *(count for _, count in buckets)]  # Prometheus counts up to each bound
    return HistogramDataPoint(
        attributes=_labels(samples[0], renamed),
        start_time_unix_nano=since_ns,
        time_unix_nano=now_ns,
        count=int(max((s.value for s in samples if s.name.endswith("_count")), default=0)),
        sum=sum(s.value for s in samples if s.name.endswith("_sum")),
        bucket_counts=[count - less for (_, count), less in zip(buckets, below[:-1], strict=True)],
        explicit_bounds=[bound for bound, _ in buckets if isfinite(bound)],
        min=None,  # type: ignore[arg-type] # optional on the wire, and Prometheus keeps neither
        max=None,  # type: ignore[arg-type]
    )


def _labels(sample: Sample, renamed: bool) -> Mapping[str, str]:
    labels = {name: value for name, value in sample.labels.items() if name != "le"}
    if not renamed:
        return labels
    named = {names.METRIC_LABELS.get(name, name): value for name, value in labels.items()}
    provider = named.get(names.PROVIDER, "")
    return {
        **named,
        names.OPERATION: names.CHAT,
        names.PROVIDER: names.PROVIDERS.get(provider, provider),
    }
