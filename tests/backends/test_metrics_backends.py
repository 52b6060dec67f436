"""The metrics contract on a real Prometheus and a real VictoriaMetrics."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.http.client import http_client
from adapters.observe.prometheus import PrometheusMetrics
from adapters.recorded.simulator.dataset import floored_to_minute
from tests.backends.metric_servers import prometheus, victoria_metrics
from tests.fakes.prometheus_server import StoredSeries
from tests.fakes.set_clock import SetClock
from tests.fixtures_metrics_contract import P99, MetricsContract, contract_series
from tools.capabilities import Interval, MetricQuery, Metrics

pytestmark = pytest.mark.backends

# Real servers drop what is older than their retention, so the data lies just behind the real now.
NOW = floored_to_minute(datetime.now(UTC))


def stored_series() -> Sequence[StoredSeries]:
    """The contract's series, a counter that grows by 2 a second, and a series that ended early."""
    contract = contract_series(NOW)
    first_s = NOW.timestamp() - 3600
    counted = [(first_s + 15 * number, 30.0 * number) for number in range(241)]
    labels = {"service": "checkout", "env": "prod"}
    gone = next(one for one in contract if one.name == P99 and one.labels["service"] == "payments")
    return [
        *contract,
        StoredSeries("orders_total", labels, counted),
        *(
            StoredSeries(
                "render_seconds_bucket",
                {**labels, "le": le},
                [(at_s, value * share) for at_s, value in counted],
            )
            for le, share in (("0.1", 0.9), ("0.5", 1.0), ("+Inf", 1.0))
        ),
        replace(gone, labels={"service": "gone", "env": "prod"}, samples=gone.samples[:-20]),
    ]


@pytest.fixture(scope="module")
def prometheus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prometheus(tmp_path_factory.mktemp("prometheus"), stored_series()) as url:
        yield url


@pytest.fixture(scope="module")
def victoria_metrics_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria_metrics(tmp_path_factory.mktemp("victoria"), stored_series()) as url:
        yield url


class BackendContract(MetricsContract):
    """Behaviour that the fake cannot prove."""

    NOW = NOW

    async def test_counter_is_read_as_its_rate(self, metrics: Metrics) -> None:
        interval = Interval(NOW - timedelta(minutes=30), NOW)
        result = await metrics.query_range(
            MetricQuery("checkout", "orders_total", interval, step_s=60)
        )
        values = [value for _at, value in result.series[0].points]
        assert values == pytest.approx([2.0] * 30)

    async def test_quantile_is_estimated_from_a_histogram(self, metrics: Metrics) -> None:
        interval = Interval(NOW - timedelta(minutes=30), NOW)
        result = await metrics.query_range(
            MetricQuery("checkout", "render_seconds_p95", interval, step_s=60)
        )
        values = [value for _at, value in result.series[0].points]
        # 90 of 100 requests are under 0.1 s, the rest between 0.1 and 0.5 s, spread evenly.
        assert values == pytest.approx([0.3] * 30)
        assert result.unit == "seconds"
        assert "estimated from the histogram render_seconds_bucket" in result.notes[0]

    async def test_series_that_ended_is_called_stale(self, metrics: Metrics) -> None:
        interval = Interval(NOW - timedelta(minutes=60), NOW)
        result = await metrics.query_range(MetricQuery("gone", P99, interval, step_s=60))
        assert len(result.series) == 1
        assert "no recent samples" in result.notes[0]

    async def test_unknown_product_gets_a_list_of_the_known_ones(self, metrics: Metrics) -> None:
        interval = Interval(NOW - timedelta(minutes=30), NOW)
        result = await metrics.query_range(MetricQuery("chekout", P99, interval))
        assert "products are: checkout" in result.notes[0]

    async def test_day_at_a_minute_is_within_the_limits(self, metrics: Metrics) -> None:
        interval = Interval(NOW - timedelta(hours=24), NOW)
        result = await metrics.query_range(MetricQuery("checkout", P99, interval, step_s=60))
        assert len(result.series[0].points) == 120


class TestPrometheus(BackendContract):
    @pytest.fixture
    async def metrics(self, prometheus_url: str) -> AsyncIterator[Metrics]:
        async with http_client(base_url=prometheus_url) as client:
            yield PrometheusMetrics(client, SetClock(NOW))


class TestVictoriaMetrics(BackendContract):
    @pytest.fixture
    async def metrics(self, victoria_metrics_url: str) -> AsyncIterator[Metrics]:
        async with http_client(base_url=victoria_metrics_url) as client:
            yield PrometheusMetrics(client, SetClock(NOW))
