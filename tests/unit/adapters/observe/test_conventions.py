"""What metrics mean by their names, in the spellings that exporters use."""

import re

import pytest

from adapters.observe.conventions import Conventions, families, meaning_of, written_alike

NAMES = [
    # OpenTelemetry, with dots kept, as Prometheus writes it, and before the conventions settled
    ("http.server.request.duration", "latency"),
    ("http_server_request_duration_seconds", "latency"),
    ("http_server_duration_milliseconds", "latency"),
    ("db_client_connections_usage", "pool"),
    ("db_client_connection_count", "pool"),
    ("traces_spanmetrics_calls_total", "traffic"),
    ("k8s.pod.cpu.usage", "cpu"),
    ("k8s_container_restarts", "restarts"),
    # Prometheus clients
    ("process_cpu_seconds_total", "cpu"),
    ("process_resident_memory_bytes", "memory"),
    ("process_start_time_seconds", "restarts"),
    ("http_requests_total", "traffic"),
    ("http_request_duration_seconds", "latency"),
    ("grpc_server_handled_total", "traffic"),
    # Kubernetes and hosts
    ("kube_pod_container_status_restarts_total", "restarts"),
    ("kube_deployment_status_replicas_unavailable", "restarts"),
    ("kubelet_volume_stats_available_bytes", "disk"),
    ("container_cpu_usage_seconds_total", "cpu"),
    ("container_cpu_cfs_throttled_periods_total", "cpu"),
    ("container_memory_working_set_bytes", "memory"),
    ("container_oom_events_total", "memory"),
    ("node_cpu_seconds_total", "cpu"),
    ("node_memory_MemAvailable_bytes", "memory"),
    ("node_filesystem_avail_bytes", "disk"),
    # meshes, ingresses
    ("istio_requests_total", "traffic"),
    ("istio_request_duration_milliseconds", "latency"),
    ("envoy_cluster_upstream_rq_time", "latency"),
    ("nginx_ingress_controller_requests", "traffic"),
    ("nginx_ingress_controller_request_duration_seconds", "latency"),
    ("traefik_service_requests_total", "traffic"),
    ("haproxy_backend_current_queue", "queue"),
    # runtimes
    ("http_server_requests_seconds", "latency"),
    ("hikaricp_connections_pending", "pool"),
    ("jvm_memory_used_bytes", "memory"),
    ("jvm_gc_pause_seconds", "memory"),
    ("go_goroutines", "pool"),
    ("nodejs_eventloop_lag_p99_seconds", "cpu"),
    # a quantile before the word
    ("p95latency", "latency"),
    ("checkout_p99duration", "latency"),
    # stores and brokers
    ("pg_stat_activity_count", "pool"),
    ("pg_stat_database_xact_rollback", "errors"),
    ("pg_replication_lag_seconds", "queue"),
    ("mysql_global_status_threads_connected", "pool"),
    ("mysql_slave_status_seconds_behind_master", "queue"),
    ("redis_connected_clients", "pool"),
    ("redis_evicted_keys_total", "errors"),
    ("rabbitmq_queue_messages_ready", "queue"),
    ("kafka_consumergroup_lag", "queue"),
    # clouds: themselves, and two exporters of the same metric
    ("CPUUtilization", "cpu"),
    ("aws_rds_cpuutilization_average", "cpu"),
    ("aws_rds_cpu_utilization_average", "cpu"),
    ("DatabaseConnections", "pool"),
    ("FreeStorageSpace", "disk"),
    ("ReplicaLag", "queue"),
    ("aws_applicationelb_httpcode_target_5_xx_count_sum", "errors"),
    ("aws_applicationelb_target_response_time_p99", "latency"),
    ("aws_sqs_approximate_number_of_messages_visible_maximum", "queue"),
    ("percentage_cpu_percent_average", "cpu"),
    ("http5xx_count_total", "errors"),
    # no one's convention: the words
    ("SuccessRate", "errors"),
    ("availability", "errors"),
    ("PodServerLatencyP99", "latency"),
    ("myapp_orders_failed_total", "errors"),
    ("myapp_payment_duration_ms", "latency"),
    ("myapp_worker_queue_depth", "queue"),
    ("myapp_requests_total", "traffic"),
    ("odd_gizmo", "other"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "role"), NAMES)
def test_name_has_its_role(name: str, role: str) -> None:
    assert meaning_of(name).role == role


@pytest.mark.parametrize(
    "name",
    [
        "go_memstats_mallocs_total",
        "kube_pod_info",
        "myapp_build_info",
        "promhttp_metric",
        "caddy_admin_http_requests_total",
        "caddy_admin_http_request_errors_total",
        "proxy_admin_request_duration_seconds",
        "redis_exporter_http_requests_total",
        "gateway_metrics_handler_requests_total",
    ],
)
def test_metric_without_a_product_meaning_is_not_a_signal(name: str) -> None:
    assert meaning_of(name).role in {None, "other"}


@pytest.mark.parametrize(
    ("name", "unlike"),
    [
        ("envoy_http_downstream_rq_total", 'envoy_http_conn_manager_prefix!="admin"'),
        ("haproxy_frontend_http_responses_total", 'proxy!~"stats|prometheus|metrics|healthz?"'),
        ("traefik_entrypoint_requests_total", 'entrypoint!~"traefik|metrics|ping"'),
    ],
)
def test_a_proxys_own_port_is_no_traffic(name: str, unlike: str) -> None:
    assert (meaning_of(name).role, meaning_of(name).where) == ("traffic", unlike)


@pytest.mark.parametrize("name", ["admin_http_requests_total", "caddy_http_requests_total"])
def test_requests_to_a_program_called_admin_are_traffic(name: str) -> None:
    assert meaning_of(name).role == "traffic"


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("SuccessRate", "down"),
        ("node_filesystem_avail_bytes", "down"),
        ("FreeableMemory", "down"),
        ("container_memory_working_set_bytes", "up"),
        ("http_requests_total", "either"),
        ("odd_gizmo", "either"),
    ],
)
def test_direction_of_trouble_follows_the_name(name: str, worse: str) -> None:
    assert meaning_of(name).worse == worse


@pytest.mark.parametrize(
    "name", ["http.server.requests", "HTTPServerRequests", "http_server_requests"]
)
def test_spellings_of_one_name_are_one(name: str) -> None:
    assert written_alike(name) == "http_server_requests"


@pytest.mark.parametrize(("title", "source"), families(), ids=lambda text: text[:30])
def test_every_family_names_its_source(title: str, source: str) -> None:
    assert title
    assert all(re.fullmatch(r"https://\S+", url) for url in source.split())


def test_operator_setting_comes_first() -> None:
    own = Conventions(
        {"http_requests_*": {"role": "queue", "worse": "down"}, "go_*": {"role": "pool"}}
    )
    assert (own.of("http_requests_total").role, own.of("http_requests_total").worse) == (
        "queue",
        "down",
    )
    assert own.of("go_threads").role == "pool"
    assert own.of("container_memory_working_set_bytes").role == "memory"


def test_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="role"):
        Conventions({"a": {"role": "speed"}})


@pytest.mark.parametrize(
    "metric",
    [
        "prometheus_http_requests_total", "prometheus_http_request_duration_seconds",
        "net_conntrack_dialer_conn_attempted_total", "net_conntrack_listener_conn_accepted_total",
        "net_conntrack_dialer_conn_failed_total", "promhttp_metric_handler_requests_total",
        "promhttp_metric_handler_requests_in_flight", "scrape_duration_seconds",
        "scrape_samples_scraped",
    ],
)  # fmt: skip
def test_scrape_metric_is_not_a_product_signal(metric: str) -> None:
    assert meaning_of(metric.removesuffix("_total")).role is None


def test_up_is_not_traffic() -> None:
    assert (meaning_of("up").role, meaning_of("up").counts) == ("restarts", None)
