"""Discovery and sweeps on a real Prometheus and a real VictoriaMetrics."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.http.client import http_client
from adapters.observe.prometheus import PrometheusMetrics
from adapters.recorded.simulator.dataset import floored_to_minute
from tests.backends.dialects import Shop, shop
from tests.backends.metric_servers import prometheus, victoria_metrics
from tests.fakes.set_clock import SetClock
from tests.fixtures_metrics_contract import contract_series
from tests.fixtures_signals_contract import SignalsContract
from tools.capabilities import Interval, Metrics, SweepQuery

pytestmark = pytest.mark.backends

NOW = floored_to_minute(datetime.now(UTC))
MANY = tuple(f"part-{number}" for number in range(50))
SERVERS = {"prometheus": prometheus, "victoria_metrics": victoria_metrics}


@pytest.fixture(scope="module", params=sorted(SERVERS))
def contract_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with SERVERS[request.param](tmp_path_factory.mktemp("data"), contract_series(NOW)) as url:
        yield url


@pytest.fixture(scope="module", params=sorted(SERVERS))
def shop_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with SERVERS[request.param](tmp_path_factory.mktemp("data"), shop(NOW, MANY)) as url:
        yield url


class TestRealSignals(SignalsContract):
    NOW = NOW

    @pytest.fixture
    async def metrics(self, contract_url: str) -> AsyncIterator[Metrics]:
        async with http_client(base_url=contract_url) as client:
            yield PrometheusMetrics(client, SetClock(NOW))


class TestDialects:
    @pytest.fixture
    async def metrics(self, shop_url: str) -> AsyncIterator[Metrics]:
        async with http_client(base_url=shop_url) as client:
            yield PrometheusMetrics(client, SetClock(NOW))

    @pytest.mark.parametrize(
        ("product", "signal", "role", "value"),
        [
            ("checkout", "http_server_request_duration_seconds_p99", "latency", 0.46),
            ("checkout", "http_server_request_duration_seconds_count", "traffic", 10.0),
            ("checkout", "http_server_request_duration_seconds_count_error_ratio", "errors", 0.05),
            ("checkout", "db_client_connections_usage", "pool", 8.0),
            ("checkout", "container_cpu_usage_seconds_total", "cpu", 0.4),
            ("checkout", "container_network_receive_bytes_total", "network", 2000.0),
            ("checkout", "kube_pod_status_ready", "restarts", 2.0),
            ("shop/checkout", "container_memory_working_set_bytes", "memory", 1e8),
            ("orders", "http_server_requests_seconds_mean", "latency", 0.2),
            ("orders", "http_server_requests_seconds_count_error_ratio", "errors", 0.0),
            ("orders", "hikaricp_connections_active_ratio", "pool", 0.9),
            ("orders", "odd_gizmo", "other", 3.0),
            ("orders-db", "aws_rds_cpuutilization_average", "cpu", 40.0),
            ("orders-db", "aws_rds_free_storage_space_average", "disk", 1e9),
        ],
    )
    async def test_signal_is_found_and_read(
        self, metrics: Metrics, product: str, signal: str, role: str, value: float
    ) -> None:
        hour = Interval(NOW - timedelta(hours=1), NOW)
        found = await metrics.discover([product], hour)
        one = next(each for each in found.signals if each.name == signal)
        swept = await metrics.sweep(SweepQuery([one], hour, 60.0))
        assert one.role == role
        assert [each.product for each in swept.series] == [product]
        assert [read for _at, read in swept.series[0].points] == pytest.approx([value] * 60)

    @pytest.mark.parametrize(
        ("signal", "spacing_s"),
        [
            ("http_server_request_duration_seconds_p99", 30.0),
            ("container_cpu_usage_seconds_total", 60.0),
            ("odd_gizmo", 15.0),
            ("aws_rds_cpuutilization_average", 300.0),
        ],
    )
    async def test_each_exporter_has_its_own_interval(
        self, metrics: Metrics, signal: str, spacing_s: float
    ) -> None:
        hour = Interval(NOW - timedelta(hours=1), NOW)
        found = await metrics.discover(["checkout", "orders", "orders-db"], hour)
        assert {one.spacing_s for one in found.signals if one.name == signal} == {spacing_s}

    async def test_fifty_products_need_few_requests(self, metrics: Metrics) -> None:
        day = Interval(NOW - timedelta(hours=24), NOW)
        found = await metrics.discover(MANY, day)
        swept = await metrics.sweep(SweepQuery(found.signals, day, 300.0))
        assert {one.product for one in swept.series} == set(MANY)
        assert len({one.signal for one in swept.series}) == len(found.signals)
        assert found.requests + swept.requests <= 25


@pytest.mark.parametrize("server", sorted(SERVERS))
async def test_a_product_of_a_thousand_long_names_is_read_within_the_servers_limits(
    tmp_path: Path, server: str
) -> None:
    shop = Shop(NOW)
    names = [f"app_{'quite_' * 8}long_name_of_gauge_{number}" for number in range(1000)]
    wide = [shop.gauge(name, {"service": "checkout"}, 1.0, 300) for name in names]
    hour = Interval(NOW - timedelta(hours=1), NOW)
    with SERVERS[server](tmp_path, wide) as url:
        async with http_client(base_url=url) as client:
            metrics = PrometheusMetrics(client, SetClock(NOW))
            found = await metrics.discover(["checkout"], hour)
            swept = await metrics.sweep(SweepQuery(found.signals, hour, 60.0))

    assert {one.signal for one in swept.series} == {signal.name for signal in found.signals}
    assert found.signals


@pytest.mark.parametrize("server", sorted(SERVERS))
async def test_an_operators_product_label_decides_a_series_product(
    tmp_path: Path, server: str
) -> None:
    shop = Shop(NOW)
    own = shop.counter("prometheus_http_requests_total", {"job": "prometheus"}, 2.5, 60)
    nobodys = shop.counter("vm_protoparser_read_calls_total", {"type": "prometheus"}, 1.0, 60)
    with SERVERS[server](tmp_path, [own, nobodys]) as url:
        alone = await metrics_of(url, ["prometheus"], product_label="job")
        everywhere = await metrics_of(url, ["prometheus"])

    assert alone == {"prometheus": {own.name}}
    assert everywhere == {"prometheus": {own.name, nobodys.name}}


async def metrics_of(
    url: str, products: Sequence[str], product_label: str = "", preferred: Sequence[str] = ()
) -> dict[str, set[str]]:
    """The names of the metrics that each has."""
    hour = Interval(NOW - timedelta(hours=1), NOW)
    async with http_client(base_url=url) as client:
        metrics = PrometheusMetrics(
            client, SetClock(NOW), product_label=product_label, preferred_labels=preferred
        )
        found = await metrics.discover(products, hour)
    by_product: dict[str, set[str]] = {product: set() for product in products}
    for metric in found.metrics:
        for product in metric.places:
            by_product[product].add(metric.name)
    return by_product


@pytest.mark.parametrize("server", sorted(SERVERS))
async def test_a_series_of_another_job_does_not_belong_to_a_product(
    tmp_path: Path, server: str
) -> None:
    shop = Shop(NOW)
    vm = {"job": "vm"}
    series = [
        shop.counter("prometheus_http_requests_total", {"job": "prometheus"}, 2.5, 60),
        shop.counter("vm_read_calls_total", {**vm, "type": "prometheus"}, 1.0, 60),
        shop.counter("dialed_failed_total", {"job": "prometheus", "dialer_name": "vm"}, 1.0, 60),
        shop.counter("breaker_calls_total", {**vm, "name": "prometheus"}, 1.0, 60),
        shop.counter("proc_cpu_total", {"job": "proc-exporter", "group": "prometheus"}, 1.0, 60),
        shop.counter("container_cpu_total", {"job": "docker", "name": "prometheus"}, 1.0, 60),
        shop.counter("mixed_total", {**vm, "type": "prometheus"}, 1.0, 60),
        shop.counter("mixed_total", {"type": "prometheus"}, 1.0, 60),
        shop.counter("tagged_total", {**vm, "tag": "lonely"}, 1.0, 60),
    ]
    with SERVERS[server](tmp_path, series) as url:
        found = await metrics_of(url, ["prometheus", "lonely"])
        both = await metrics_of(url, ["prometheus", "vm"])
        preferred = await metrics_of(url, ["prometheus"], preferred=["type"])

    own = {"prometheus_http_requests_total", "dialed_failed_total"}
    own |= {"proc_cpu_total", "container_cpu_total", "mixed_total"}
    assert found == {"prometheus": own, "lonely": {"tagged_total"}}
    assert both == {
        "prometheus": own,
        "vm": {"vm_read_calls_total", "breaker_calls_total", "mixed_total", "tagged_total"},
    }
    assert preferred == {"prometheus": {*own, "vm_read_calls_total"}}


@pytest.mark.parametrize("server", sorted(SERVERS))
async def test_products_are_found_by_a_label_of_any_name(tmp_path: Path, server: str) -> None:
    shop = Shop(NOW)
    names = ("basket", "ledger")
    series = [
        shop.gauge(metric, {"svc": name, "inst": f"{name}-{number}", "job": "pods"}, 1.0, 60)
        for metric in ("took_p95", "hits", "held_mb")
        for name in names
        for number in range(3)
    ]
    hour = Interval(NOW - timedelta(hours=1), NOW)
    with SERVERS[server](tmp_path, series) as url:
        async with http_client(base_url=url) as client:
            found = await PrometheusMetrics(client, SetClock(NOW)).discover([], hour)

    assert (found.products, found.without) == (names, ())
    assert {signal.metric for signal in found.signals} == {"took_p95", "hits", "held_mb"}
    assert found.requests <= 15


@pytest.mark.parametrize("server", sorted(SERVERS))
async def test_the_labels_of_rules_are_not_products(tmp_path: Path, server: str) -> None:
    shop = Shop(NOW)
    series = [
        shop.counter("http_requests_total", {"job": "checkout"}, 2.5, 60),
        shop.counter("ALERTS", {"alertname": "Slow", "service": "team-a", "job": "rules"}, 1.0, 60),
        shop.counter("ALERTS_FOR_STATE", {"alertname": "Slow", "service": "team-a"}, 1.0, 60),
        shop.counter("GRAFANA_ALERTS", {"alertname": "Slow", "service": "team-a"}, 1.0, 60),
        shop.counter("service:requests:rate5m", {"service": "team-b"}, 1.0, 60),
    ]
    hour = Interval(NOW - timedelta(hours=1), NOW)
    with SERVERS[server](tmp_path, series) as url:
        async with http_client(base_url=url) as client:
            metrics = PrometheusMetrics(client, SetClock(NOW))
            everything = await metrics.discover([], hour)
            alone = await metrics.discover(["team-a"], hour)

    assert everything.products == ("checkout",)
    assert {signal.metric for signal in everything.signals} == {"http_requests_total"}
    assert (list(alone.signals), alone.without) == ([], ("team-a",))
