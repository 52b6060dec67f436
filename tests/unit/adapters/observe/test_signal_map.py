"""From names that exist to signals."""

from collections.abc import Mapping

import pytest

from adapters.observe.signal_map import KnownMetric, signals_of
from tools.signals import MetricType, Place, Signal

HERE = {"checkout": [Place("service", "checkout")]}


def known(
    name: str, kind: MetricType = "", values: Mapping[str, frozenset[str]] | None = None
) -> KnownMetric:
    return KnownMetric(name, HERE, kind, None, values or {})


def named(*found: KnownMetric) -> dict[str, Signal]:
    return {signal.name: signal for signal in signals_of(found)}


def test_histogram_is_latency_and_traffic() -> None:
    found = named(
        *(known(f"http_request_duration_seconds_{part}") for part in ("bucket", "sum", "count"))
    )
    assert {name: (one.role, one.reading) for name, one in found.items()} == {
        "http_request_duration_seconds_p99": ("latency", "quantile"),
        "http_request_duration_seconds_mean": ("latency", "mean"),
        "http_request_duration_seconds_count": ("traffic", "rate"),
    }


@pytest.mark.parametrize(
    ("label", "values", "wheres"),
    [
        ("statistic", {"p50", "p99", "Average"}, ['statistic="p99"', 'statistic="p50"']),
        ("stat", {"Average", "p95"}, ['stat="p95"', 'stat="Average"']),
        ("quantile", {"0.5", "0.9"}, ['quantile="0.9"', 'quantile="0.5"']),
        ("stat", {"Average", "Maximum"}, ['stat="Average"']),
        ("stat", {"p50"}, ["", 'stat="p50"']),
    ],
)
def test_latency_is_read_by_its_tail_and_by_what_most_requests_see(
    label: str, values: set[str], wheres: list[str]
) -> None:
    found = named(known("request_latency_seconds", values={label: frozenset(values)}))

    assert [one.where for one in found.values()] == wheres


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("took_p95", "latency"),
        ("WaitP99", "latency"),
        ("spent_q90_inside", "latency"),
        ("app_tp99", "latency"),
        ("lag_q95", "latency"),
        ("sent_bytes_p95", "other"),
        ("lag", "queue"),
        ("step90", "other"),
    ],
)
def test_a_quantile_in_a_name_shows_a_duration(name: str, role: str) -> None:
    assert named(known(name))[name].role == role


def test_sum_and_count_without_buckets_are_a_mean() -> None:
    found = named(
        known("http_server_requests_seconds_sum"), known("http_server_requests_seconds_count")
    )
    assert found["http_server_requests_seconds_mean"].reading == "mean"


@pytest.mark.parametrize(
    ("one", "reading"),
    [
        (known("nginx_ingress_controller_requests"), "rate"),  # by convention
        (known("myapp_things_total"), "rate"),  # by its suffix
        (known("myapp_things", "counter"), "rate"),  # by the backend's word
        (known("myapp_things_total", "gauge"), "gauge"),  # which counts more than a suffix
        (known("myapp_things"), "gauge"),
        (known("kube_pod_container_status_restarts_total"), "increase"),
        (known("process_start_time_seconds", "gauge"), "changes"),
    ],
    ids=lambda value: getattr(value, "metric", value),
)
def test_counter_is_never_read_raw(one: KnownMetric, reading: str) -> None:
    assert [signal.reading for signal in signals_of([one])] == [reading]


@pytest.mark.parametrize(
    ("label", "values", "where"),
    [
        ("code", {"200"}, 'code=~"5..|5xx|'),
        ("status", {"200", "500"}, 'status=~"5..|5xx|'),
        ("http_response_status_code", {"404"}, 'http_response_status_code=~"5.."'),
        ("grpc_code", {"OK"}, 'grpc_code=~"Unknown|'),
        ("envoy_response_code_class", {"2"}, 'envoy_response_code_class=~"5"'),
    ],
)
def test_failure_share_is_read_by_a_status_label(label: str, values: set[str], where: str) -> None:
    found = named(known("http_requests_total", "counter", {label: frozenset(values)}))
    failing = found["http_requests_total_error_ratio"]
    assert (failing.role, failing.reading, failing.over) == (
        "errors", "rate_ratio", "http_requests_total",
    )  # fmt: skip
    assert failing.where.startswith(where)


@pytest.mark.parametrize(
    "values", [{}, {"status": frozenset({"shipped", "open"})}, {"code": frozenset({"EUR"})}]
)
def test_no_share_is_invented_without_a_status_label(values: Mapping[str, frozenset[str]]) -> None:
    assert list(named(known("http_requests_total", "counter", values))) == ["http_requests_total"]


@pytest.mark.parametrize(
    ("name", "unit"), [("http.request.duration", None), ("cache_hit_ratio", "ratio")]
)
def test_unit_is_a_word_of_the_name_not_a_part_of_one(name: str, unit: str | None) -> None:
    assert named(known(name))[name].unit == unit


def test_ratio_needs_both_of_its_parts() -> None:
    alone = named(known("hikaricp_connections_active"))
    both = named(known("hikaricp_connections_active"), known("hikaricp_connections_max"))
    assert alone["hikaricp_connections_active"].reading == "gauge"
    assert both["hikaricp_connections_active_ratio"].reading == "ratio"


def test_matcher_with_a_missing_label_is_omitted() -> None:
    found = named(known("jvm_memory_used_bytes"))
    assert found["jvm_memory_used_bytes"].where == ""


@pytest.mark.parametrize(
    ("values", "role"), [({"p50", "p90"}, "latency"), ({"Average"}, "queue"), (set(), "queue")]
)
def test_a_lag_with_quantiles_is_a_duration(values: set[str], role: str) -> None:
    labels = {"statistic": frozenset(values)} if values else {}
    found = named(known("lag", values=labels))

    assert {one.role for one in found.values()} == {role}


def test_one_of_several_quantiles_is_read() -> None:
    values = {"quantile": frozenset({"0.5", "0.9", "0.99"})}
    found = named(known("rpc_duration_seconds", "summary", values))
    assert found["rpc_duration_seconds"].where == 'quantile="0.99"'


def test_unknown_name_is_a_signal() -> None:
    assert named(known("odd_gizmo"))["odd_gizmo"].role == "other"
