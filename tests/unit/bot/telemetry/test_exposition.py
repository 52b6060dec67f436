"""What Prometheus reads, beside what its library writes."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.parser import text_string_to_metric_families

from bot.telemetry.exposition import CONTENT_TYPE, exposed
from bot.telemetry.metrics import Metrics

words = st.text(st.characters(codec="utf-8"), max_size=12)
values = st.floats(allow_subnormal=False)
counts = st.floats(min_value=0, allow_nan=False)


@given(words, words, st.lists(values, max_size=3), counts, st.lists(counts, max_size=4))
def test_it_is_what_the_library_writes(
    documentation: str, label: str, levels: list[float], count: float, seen: list[float]
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("level", documentation, ["of", "at"], registry=registry)
    for number, level in enumerate(levels):
        gauge.labels(label, number).set(level)
    Counter("asked", documentation, ["by"], registry=registry).labels(label).inc(count)
    Counter("bare_total", documentation, registry=registry).inc(count)
    histogram = Histogram("took_seconds", documentation, registry=registry)
    for each in seen:
        histogram.observe(each)

    assert exposed(registry) == generate_latest(registry)


def test_ours_are_read_back_and_written_alike() -> None:
    registry = Metrics().registry

    told = exposed(registry).decode()

    families = [*text_string_to_metric_families(told)]
    assert {"kortex_turns", "process_resident_memory_bytes"} <= {each.name for each in families}
    names = [line.split(maxsplit=3)[:3] for line in told.splitlines() if line.startswith("#")]
    theirs = generate_latest(registry).decode().splitlines()
    assert names == [line.split(maxsplit=3)[:3] for line in theirs if line.startswith("#")]


def test_its_type_is_the_librarys() -> None:
    assert CONTENT_TYPE == CONTENT_TYPE_PLAIN_0_0_4
