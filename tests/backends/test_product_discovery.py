"""Products are found by the label of their own series, beside labels of rules and inventories."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.http.client import http_client
from adapters.observe.prometheus import PrometheusMetrics
from adapters.recorded.simulator.dataset import floored_to_minute
from tests.backends.metric_servers import prometheus, victoria_metrics
from tests.fakes.prometheus_server import StoredSeries
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval

pytestmark = pytest.mark.backends

NOW = floored_to_minute(datetime.now(UTC))
STATE = {"job": "kube-state-metrics", "instance": "10.0.0.9:8080"}

NODE = {"job": "node", "instance": "10.0.0.1:9100"}


def series(name: str, labels: dict[str, str], step: float = 0.0) -> StoredSeries:
    begin = NOW.timestamp() - 3600
    return StoredSeries(name, labels, [(begin + 15 * n, 1.0 + step * n) for n in range(241)])


def shop(label: str, *more: str) -> list[StoredSeries]:
    """Two products of two replicas each; `more` are labels that each replica has another value of."""
    return [
        series(name, {label: product, **dict.fromkeys(more, f"10.0.{n}.{replica}:80")}, step)
        for n, product in enumerate(("checkout", "payments"))
        for replica in range(2 if more else 1)
        for name, step in (("http_requests_total", 30.0), ("process_resident_memory_bytes", 512.0))
    ]


RULES = {
    "a fact of an SLO": [series("sloth_slo_info", {"service": "checkout-slo", "slo": "requests"})],
    "a rule's result that moves": [
        series("error_ratio", {"service": "storefront"}, 0.001),
        series("pyrra_availability", {"service": "storefront", "slo": "a"}, 0.001),
        series("pyrra_objective", {"service": "storefront", "slo": "a"}),
    ],
    "an inventory": [
        series("kube_service_info", {"service": "kubernetes", **STATE}),
        series("kube_service_created", {"service": "kubernetes", **STATE}),
        series("kube_service_labels", {"service": "kubernetes", **STATE}),
    ],
    "a rule's result by job": [
        series("availability", {"service": "slo", "job": "checkout"}, 0.001)
    ],
    "alerts": [
        series("ALERTS", {"alertname": "Slow", "alertstate": "firing", "service": "slo"}),
        series("ALERTS_FOR_STATE", {"alertname": "Slow", "service": "slo"}, 1.0),
        series("GRAFANA_ALERTS", {"alertname": "Slow", "service": "slo"}, 1.0),
        series("service:errors:ratio5m", {"service": "slo"}, 0.001),
    ],
    "kube-state-metrics": [
        series("kube_pod_container_status_restarts_total", {"service": "kubernetes", **STATE}, 1.0),
        series("process_cpu_seconds_total", {"service": "kubernetes", **STATE}, 0.1),
        series("up", {"service": "kubernetes", **STATE}),
    ],
    "probes": [
        series("probe_success", {"service": "home", "job": "blackbox", "instance": "a"}, 0.1),
        series("probe_duration_seconds", {"service": "home", "job": "blackbox", "instance": "a"}),
    ],
    "a machine": [
        series("node_cpu_seconds_total", {"service": "node-exporter", **NODE}, 1.0),
        series("node_systemd_service_restart_total", {"service": "sshd", **NODE}, 1.0),
    ],
    "a collector": [
        series("otelcol_receiver_accepted_spans_total", {"service_name": "otelcol", **NODE}, 1.0),
        series("otelcol_exporter_queue_size", {"service_name": "otelcol", **NODE}, 1.0),
    ],
}
EVERYTHING = [each for some in RULES.values() for each in some]


async def products(url: str) -> Sequence[str]:
    async with http_client(base_url=url) as client:
        metrics = PrometheusMetrics(client, SetClock(NOW))
        return (await metrics.discover((), Interval(NOW - timedelta(hours=1), NOW))).products


@pytest.mark.parametrize("beside", RULES.values(), ids=RULES)
async def test_a_label_that_only_rules_or_facts_have_hides_no_product(
    tmp_path: Path, beside: list[StoredSeries]
) -> None:
    with prometheus(tmp_path, [*shop("job", "instance"), *beside]) as url:
        assert {"checkout", "payments"} <= {*await products(url)}


async def test_the_same_on_victoria_metrics(tmp_path: Path) -> None:
    with victoria_metrics(tmp_path, [*shop("job", "instance"), *EVERYTHING]) as url:
        assert {"checkout", "payments"} <= {*await products(url)}


async def test_products_without_a_scrape_are_found_beside_scraped_ones(tmp_path: Path) -> None:
    nodes = [series("node_load1", {"job": "node", "instance": "10.0.0.1:9100"}, 0.1)]
    with victoria_metrics(tmp_path, [*shop("service"), *nodes]) as url:
        assert {*await products(url)} == {"checkout", "payments"}
