"""A case's files keep the same contracts as every backend: logs, metrics, signals, traces."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.packs.archive import CaseFiles
from adapters.recorded.packs.recording import read_recording
from adapters.recorded.player.backends import RecordedBackends, backends_of
from tests.fakes.set_clock import SetClock
from tests.fixtures_logs_contract import LogsContract, contract_lines
from tests.fixtures_metrics_contract import MetricsContract, contract_series
from tests.fixtures_signals_contract import SignalsContract
from tests.fixtures_traces_contract import TracesContract, contract_traces
from tools.capabilities import Interval, Logs, MetricQuery, Metrics, Traces

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
HALF_HOUR = Interval(NOW - timedelta(minutes=30), NOW)


def world(name: str, rows: Sequence[Mapping[str, object]]) -> RecordedBackends:
    case = {"id": "c", "set": "s", "asked": "?", "now": NOW.isoformat(), "products": []}
    lines = "\n".join(json.dumps(row) for row in rows)
    files = {"case.json": json.dumps(case).encode(), name: lines.encode()}
    clock = SetClock(NOW)
    return backends_of(read_recording(CaseFiles("c", files)), clock, UnsealedCodec())


@pytest.fixture
def now() -> datetime:
    return NOW


def series() -> list[dict[str, object]]:
    return [
        {"name": one.name, "labels": dict(one.labels), "points": list(one.samples)}
        for one in contract_series(NOW)
    ]


class TestPackedLogs(LogsContract):
    @pytest.fixture
    def logs(self) -> Logs:
        rows = [
            {
                "ts_ns": line.ts_ns,
                "labels": {"service": product, "host": line.host, "level": line.level},
                "line": line.message,
                "trace_id": line.trace_id,
            }
            for product in ("inventory", "payments")
            for line in contract_lines(NOW, product)
        ]
        found = world("logs.ndjson", rows).logs
        assert found is not None
        return found


class TestPackedMetrics(MetricsContract):
    @pytest.fixture
    def metrics(self) -> Metrics:
        found = world("metrics.ndjson", series()).metrics
        assert found is not None
        return found

    async def test_counter_is_read_as_its_rate(self) -> None:
        result = await counted().query_range(
            MetricQuery("shop", "orders_total", HALF_HOUR, step_s=60)
        )
        assert [value for _at, value in result.series[0].points] == pytest.approx([2.0] * 30)
        assert result.unit == "per second"

    async def test_quantile_is_estimated_from_a_histogram(self) -> None:
        asked = MetricQuery("shop", "render_seconds_p95", HALF_HOUR, step_s=60)
        result = await counted().query_range(asked)
        # 90 of 100 requests are under 0.1 s, the rest between 0.1 and 0.5 s, spread evenly.
        assert [value for _at, value in result.series[0].points] == pytest.approx([0.3] * 30)
        assert "estimated from the histogram render_seconds_bucket" in result.notes[0]

    async def test_metrics_without_a_role_are_found_too(self) -> None:
        found = await counted().discover(["shop"], HALF_HOUR)
        assert "render_seconds_bucket" in {metric.name for metric in found.metrics}


def counted() -> Metrics:
    """A counter that grows by 2 a second, and a histogram that grows with it."""
    first = NOW.timestamp() - 3600
    points = [(first + 15 * number, 30.0 * number) for number in range(241)]
    rows: list[dict[str, object]] = [
        {"name": "orders_total", "labels": {"service": "shop"}, "points": points}
    ]
    for le, share in {"0.1": 0.9, "0.5": 1.0, "+Inf": 1.0}.items():
        labels = {"service": "shop", "le": le}
        of_bucket = [(at, value * share) for at, value in points]
        rows.append({"name": "render_seconds_bucket", "labels": labels, "points": of_bucket})
    found = world("metrics.ndjson", rows).metrics
    assert found is not None
    return found


class TestPackedSignals(SignalsContract):
    @pytest.fixture
    def metrics(self) -> Metrics:
        found = world("metrics.ndjson", series()).metrics
        assert found is not None
        return found


class TestPackedTraces(TracesContract):
    @pytest.fixture
    def traces(self) -> Traces:
        rows = [
            {
                "trace_id": trace.trace_id,
                "span_id": span.span_id,
                "parent_id": span.parent_id or None,
                "service": span.service,
                "name": span.operation,
                "start_ns": span.start_us * 1000,
                "end_ns": (span.start_us + span.duration_us) * 1000,
                "status": span.status,
                "message": span.message,
                "tags": dict(span.tags),
            }
            for trace in contract_traces(NOW)
            for span in trace.spans
        ]
        found = world("traces.ndjson", rows).traces
        assert found is not None
        return found
