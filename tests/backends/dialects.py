"""A shop with services behind different exporters: OpenTelemetry, Spring, cAdvisor, CloudWatch."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from tests.fakes.prometheus_server import StoredSeries

HOURS_S = 2 * 3600
BUCKETS = (("0.1", 0.9), ("0.5", 1.0), ("+Inf", 1.0))


class Shop:
    """Series until `now`, two hours long."""

    def __init__(self, now: datetime) -> None:
        self._end_s = now.timestamp()

    def counter(
        self, name: str, labels: Mapping[str, str], per_s: float, spacing_s: int
    ) -> StoredSeries:
        begin = self._end_s - HOURS_S
        steps = range(HOURS_S // spacing_s + 1)
        samples = [(begin + n * spacing_s, per_s * n * spacing_s) for n in steps]
        return StoredSeries(name, labels, samples)

    def gauge(
        self, name: str, labels: Mapping[str, str], value: float, spacing_s: int
    ) -> StoredSeries:
        begin = self._end_s - HOURS_S
        samples = [(begin + n * spacing_s, value) for n in range(HOURS_S // spacing_s + 1)]
        return StoredSeries(name, labels, samples)

    def open_telemetry(self, product: str) -> Iterator[StoredSeries]:
        """Ten requests a second, a twentieth fail; 90 of 100 under 0.1 s."""
        name = "http_server_request_duration_seconds"
        for code, per_s in (("200", 9.5), ("500", 0.5)):
            labels = {"service_name": product, "http_response_status_code": code}
            for le, share in BUCKETS:
                yield self.counter(f"{name}_bucket", {**labels, "le": le}, per_s * share, 30)
            yield self.counter(f"{name}_count", labels, per_s, 30)
            yield self.counter(f"{name}_sum", labels, per_s * 0.1, 30)
        for state, value in (("used", 8.0), ("idle", 2.0)):
            labels = {"service_name": product, "state": state}
            yield self.gauge("db_client_connections_usage", labels, value, 30)

    def pods(self, product: str, busiest: float = 0.4) -> Iterator[StoredSeries]:
        """Two pods of a Deployment, as cAdvisor and kube-state-metrics see them each minute."""
        for suffix, cores in (("bbbbb", 0.1), ("ccccc", busiest)):
            pod = {"namespace": "shop", "pod": f"{product}-7d9f8b6c5d-{suffix}"}
            inside = {**pod, "container": product}
            yield self.counter("container_cpu_usage_seconds_total", inside, cores, 60)
            yield self.counter("container_cpu_usage_seconds_total", pod, 9.0, 60)  # the whole pod
            yield self.gauge("container_memory_working_set_bytes", inside, 1e8, 60)
            yield self.counter("container_network_receive_bytes_total", pod, 1000.0, 60)
            yield self.counter("kube_pod_container_status_restarts_total", inside, 0.0, 60)
            for condition, value in (("true", 1.0), ("false", 0.0)):
                labels = {**pod, "condition": condition}
                yield self.gauge("kube_pod_status_ready", labels, value, 60)
        deployment = {"namespace": "shop", "deployment": product}
        yield self.gauge("kube_deployment_status_replicas_unavailable", deployment, 0.0, 60)

    def spring(self, product: str) -> Iterator[StoredSeries]:
        """Micrometer without histograms, and a pool of ten with nine in use."""
        of = {"application": product}
        for status, per_s in (("200", 3.0), ("404", 1.0)):
            labels = {**of, "status": status, "uri": "/orders"}
            yield self.counter("http_server_requests_seconds_count", labels, per_s, 15)
            yield self.counter("http_server_requests_seconds_sum", labels, per_s * 0.2, 15)
        yield self.gauge("hikaricp_connections_active", of, 9.0, 15)
        yield self.gauge("hikaricp_connections_max", of, 10.0, 15)
        yield self.gauge("odd_gizmo", of, 3.0, 15)

    def cloud_watch(self, product: str) -> Iterator[StoredSeries]:
        """A database every five minutes."""
        labels = {"dimension_DBInstanceIdentifier": product}
        yield self.gauge("aws_rds_cpuutilization_average", labels, 40.0, 300)
        yield self.gauge("aws_rds_free_storage_space_average", labels, 1e9, 300)


def shop(now: datetime, more: Sequence[str] = ()) -> list[StoredSeries]:
    """`checkout` (OpenTelemetry), `orders` (Spring), both in pods, `orders-db`, and `more`."""
    of = Shop(now)
    return [
        *of.open_telemetry("checkout"),
        *of.pods("checkout"),
        *of.spring("orders"),
        *of.pods("orders"),
        *of.cloud_watch("orders-db"),
        *(one for product in more for one in (*of.open_telemetry(product), *of.pods(product))),
    ]
