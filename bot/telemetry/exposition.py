"""Metrics as the text that Prometheus reads.

https://prometheus.io/docs/instrumenting/exposition_formats, the text format 0.0.4. The library's own writer
brings three HTTP servers and a client: 2 MB in a bot that has its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# What this format calls the kinds of metrics, and what a name ends in there.
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "counter": ("counter", "_total"),
    "unknown": ("untyped", ""),
}
# Series that this format knows nothing of: told as metrics of their own.
_BESIDE: Final = "_created"


def exposed(registry: Collector) -> bytes:
    """All it collects; our names and labels need no escaping."""
    return "".join(line for metric in registry.collect() for line in _lines(metric)).encode()


def _lines(metric: Metric) -> Iterator[str]:
    kind, ending = _KINDS.get(metric.type, (metric.type, ""))
    beside = metric.name + _BESIDE
    yield from _head(metric.name + ending, metric.documentation, kind)
    yield from (_line(each) for each in metric.samples if each.name != beside)
    created = [_line(each) for each in metric.samples if each.name == beside]
    if created:
        yield from _head(beside, metric.documentation, "gauge")
        yield from created


def _head(name: str, documentation: str, kind: str) -> Iterable[str]:
    told = documentation.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {told}\n", f"# TYPE {name} {kind}\n"


def _line(sample: Sample) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in sorted(sample.labels.items()))
    labels = f"{{{','.join(pairs)}}}" if sample.labels else ""
    # Milliseconds. Samples of workers come with the time that they were told with, if any.
    at = "" if sample.timestamp is None else f" {int(float(sample.timestamp) * 1000)}"
    value = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
    return f"{sample.name}{labels} {value}{at}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
