"""The simulated shop is repeatable, cheap, and is true to its incidents."""

import statistics
from datetime import UTC, datetime, timedelta

import pytest

from adapters.recorded.simulator.dataset import Dataset, floored_to_minute
from adapters.recorded.simulator.scenario import INCIDENTS
from adapters.recorded.simulator.topology import PRODUCTS
from tests.pace import spending
from tools.capabilities import LogLine, Trace

ANCHOR = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def dataset(name: str, anchor: datetime = ANCHOR, seed: int = 7) -> Dataset:
    return Dataset(INCIDENTS[name](anchor), anchor, seed)


def lines(data: Dataset, product: str, start: datetime, end: datetime) -> list[LogLine]:
    minutes = data.minutes(start, end)
    return [line for minute in minutes for line in data.lines(product, minute)]


def count(data: Dataset, product: str, level: str, start: datetime, end: datetime) -> int:
    return sum(line.level == level for line in lines(data, product, start, end))


def samples(data: Dataset, product: str, metric: str, start: datetime, minutes: int) -> list[float]:
    values = (data.value(product, metric, start + number * MINUTE) for number in range(minutes))
    return [value for value in values if value is not None]


def sigmas(data: Dataset, product: str, metric: str) -> float:
    """How far the last 15 minutes lie from the day before the incidents, in deviations."""
    baseline = samples(data, product, metric, data.start, 23 * 60)
    window = samples(data, product, metric, ANCHOR - 15 * MINUTE, 15)
    mean = statistics.mean(baseline)
    spread = max(statistics.stdev(baseline), 0.01 * abs(mean), 1e-6)
    return (statistics.mean(window) - mean) / spread


def all_sigmas(data: Dataset) -> dict[tuple[str, str], float]:
    return {
        (product, metric): sigmas(data, product, metric)
        for product in data.products
        for metric in data.metrics(product)
    }


def self_time_us(trace: Trace) -> dict[str, int]:
    """Own time per service: each span less its children, which never overlap in this shop."""
    own = {span.span_id: span.duration_us for span in trace.spans}
    for span in trace.spans:
        own[span.parent_id] = own.get(span.parent_id, 0) - span.duration_us
    totals = dict.fromkeys((span.service for span in trace.spans), 0)
    for span in trace.spans:
        totals[span.service] += own[span.span_id]
    return totals


def slow_traces(data: Dataset) -> list[Trace]:
    return [
        trace
        for minute in data.minutes(ANCHOR - 15 * MINUTE, ANCHOR)
        for trace in data.traces(minute)
        if max(span.duration_us for span in trace.spans) > 900_000
    ]


@pytest.mark.parametrize("name", INCIDENTS)
def test_same_seed_and_anchor_give_the_same_data_in_any_order(name: str) -> None:
    first, second = dataset(name), dataset(name)
    start, end = ANCHOR - MINUTE, ANCHOR
    forwards = [lines(first, product, start, end) for product in PRODUCTS]
    backwards = [lines(second, product, start, end) for product in reversed(PRODUCTS)]
    assert forwards == list(reversed(backwards))
    assert all_sigmas(first) == all_sigmas(second)


def test_another_seed_gives_other_data() -> None:
    start, end = ANCHOR - 5 * MINUTE, ANCHOR
    one, other = dataset("quiet-day", seed=1), dataset("quiet-day", seed=2)
    assert lines(one, "web", start, end) != lines(other, "web", start, end)


def test_metrics_of_a_whole_incident_cost_little_cpu() -> None:
    data = dataset("bad-deploy")
    with spending() as spent:
        all_sigmas(data)
        lines(data, "checkout", ANCHOR - 30 * MINUTE, ANCHOR)
    assert spent.pieces < 200


@pytest.mark.parametrize(
    ("name", "product", "metric"),
    [
        ("bad-deploy", "checkout", "http_request_duration_seconds_p99"),
        ("bad-deploy", "checkout", "http_request_error_ratio"),
        ("saturated-dependency", "payments-db", "db_connections_in_use_ratio"),
        ("saturated-dependency", "payments-db", "db_query_duration_seconds_p99"),
        ("saturated-dependency", "payments", "http_request_duration_seconds_p99"),
        ("saturated-dependency", "checkout", "http_request_duration_seconds_p99"),
    ],
)
def test_fault_exceeds_the_day_before(name: str, product: str, metric: str) -> None:
    assert sigmas(dataset(name), product, metric) > 5


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("bad-deploy", "recommendations"),
        ("bad-deploy", "cart"),
        ("bad-deploy", "payments"),
        ("saturated-dependency", "inventory"),
        ("saturated-dependency", "recommendations"),
    ],
)
def test_decoys_and_bystanders_have_a_normal_day(name: str, product: str) -> None:
    found = {key: value for key, value in all_sigmas(dataset(name)).items() if key[0] == product}
    assert max(abs(value) for value in found.values()) < 3


@pytest.mark.parametrize("hour", range(0, 24, 3))
def test_quiet_day_shows_no_anomaly_at_any_hour(hour: int) -> None:
    anchor = ANCHOR.replace(hour=hour)
    data = dataset("quiet-day", anchor)
    found = {
        metric: statistics.mean(samples(data, "checkout", metric, anchor - 15 * MINUTE, 15))
        / statistics.mean(samples(data, "checkout", metric, anchor - 45 * MINUTE, 30))
        for metric in data.metrics("checkout")
    }
    assert found == pytest.approx(dict.fromkeys(found, 1.0), abs=0.35)


def test_checkout_is_six_times_slower_after_its_deploy() -> None:
    metric = "http_request_duration_seconds_p50"
    data = dataset("bad-deploy")
    before = statistics.mean(samples(data, "checkout", metric, ANCHOR - 60 * MINUTE, 30))
    after = statistics.mean(samples(data, "checkout", metric, ANCHOR - 15 * MINUTE, 15))
    assert after / before > 6


@pytest.mark.parametrize("name", ["bad-deploy", "saturated-dependency"])
def test_slow_traces_spend_their_own_time_in_the_culprit(name: str) -> None:
    data = dataset(name)
    slow = slow_traces(data)
    owners = [max(own, key=own.__getitem__) for own in map(self_time_us, slow)]
    assert len(slow) > 10
    assert statistics.mode(owners) == data.scenario.truth.culprit
    assert owners.count(data.scenario.truth.culprit) / len(owners) > 0.9


@pytest.mark.parametrize("name", ["bad-deploy", "saturated-dependency"])
def test_fault_persists_after_the_anchor(name: str) -> None:
    data = dataset(name)
    metric = "http_request_duration_seconds_p50"
    before = statistics.mean(samples(data, "checkout", metric, data.start, 60))
    later = statistics.mean(samples(data, "checkout", metric, data.end - 60 * MINUTE, 60))
    assert later / before > 5


def test_noisy_inventory_was_as_noisy_in_the_morning() -> None:
    data = dataset("saturated-dependency")
    now = count(data, "inventory", "error", ANCHOR - 30 * MINUTE, ANCHOR)
    morning = count(data, "inventory", "error", ANCHOR - 630 * MINUTE, ANCHOR - 600 * MINUTE)
    culprit = count(data, "payments", "error", ANCHOR - 30 * MINUTE, ANCHOR)
    assert now == pytest.approx(morning, rel=0.2)
    assert now > culprit


def test_checkout_errors_begin_with_its_deploy() -> None:
    data = dataset("bad-deploy")
    assert count(data, "checkout", "error", ANCHOR - 24 * MINUTE, ANCHOR) > 20
    assert count(data, "checkout", "error", ANCHOR - 124 * MINUTE, ANCHOR - 100 * MINUTE) < 3


def test_one_line_of_one_incident_contains_an_injection() -> None:
    start = ANCHOR - 60 * MINUTE
    found = [
        (name, line.level)
        for name in INCIDENTS
        for line in lines(dataset(name), "checkout", start, ANCHOR)
        if "Ignore your instructions" in line.message
    ]
    assert found == [("bad-deploy", "error")]


def test_every_trace_named_in_a_log_line_exists_and_is_one_tree() -> None:
    data = dataset("bad-deploy")
    named = {
        line.trace_id
        for line in lines(data, "checkout", ANCHOR - 20 * MINUTE, ANCHOR)
        if line.trace_id
    }
    traces = [data.trace(trace_id) for trace_id in named]
    assert len(traces) > 20
    assert [trace for trace in traces if trace is None] == []
    roots = [
        [span.service for span in trace.spans if not span.parent_id]
        for trace in traces
        if trace is not None
    ]
    assert roots == [["web"]] * len(traces)


@pytest.mark.parametrize("trace_id", ["", "zz", "0" * 32, "6b01a491" + "0" * 24])
def test_unknown_trace_is_not_found(trace_id: str) -> None:
    assert dataset("quiet-day").trace(trace_id) is None


def test_lines_of_a_minute_are_newest_first() -> None:
    data = dataset("saturated-dependency")
    minute = data.minutes(ANCHOR - MINUTE, ANCHOR)[0]
    stamps = [line.ts_ns for line in data.lines("payments-db", minute)]
    assert stamps == sorted(stamps, reverse=True)
    assert {ts_ns // 60_000_000_000 for ts_ns in stamps} == {minute}


def test_anchor_is_floored_to_the_minute() -> None:
    assert floored_to_minute(ANCHOR + timedelta(seconds=59, microseconds=5)) == ANCHOR
