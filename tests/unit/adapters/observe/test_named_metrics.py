"""Metrics by name and labels: the vendors' own examples, the queries, and their limits."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from adapters.observe.cloudwatch_metrics import CloudWatchMetrics
from adapters.observe.datadog import Datadog
from adapters.observe.named_metrics import NamedMetrics
from tests.fakes.aws import cloudwatch
from tests.fakes.cloudwatch_server import CloudWatchServer
from tests.fakes.datadog_server import DatadogServer
from tests.fakes.prometheus_server import StoredSeries
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, MetricQuery, SweepQuery
from tools.errors import InvalidArguments

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
# https://docs.datadoghq.com/api/latest/metrics/#query-timeseries-points (v1)
DOCUMENTED: dict[str, Any] = {
    "status": "ok", "res_type": "time_series", "resp_version": 1, "query": "avg:system.cpu.idle{*}",
    "from_date": 1795266000000, "to_date": 1795269600000, "message": "", "group_by": [],
    "series": [
        {
            "unit": [
                {"family": "time", "id": 11, "name": "millisecond", "short_name": "ms",
                 "plural": "milliseconds", "scale_factor": 0.001},
                None,
            ],
            "query_index": 0, "aggr": "avg", "metric": "system.cpu.idle",
            "tag_set": [], "expression": "system.cpu.idle{host:foo,env:test}",
            "scope": "host:foo,env:test", "interval": 60, "length": 2, "start": 1795266000000,
            "end": 1795266119999, "attributes": {}, "display_name": "system.cpu.idle",
            "pointlist": [[1795266000000, 77.62145685254418], [1795266060000, None]],
        }
    ],
}  # fmt: skip


def stored(name: str, value: float, **labels: str) -> StoredSeries:
    seconds = range(0, 3600, 60)
    start = HOUR.start.timestamp()
    return StoredSeries(name, labels, [(start + second, value) for second in seconds])


def answering(body: object, status: int = 200) -> httpx.AsyncClient:
    reply = httpx.MockTransport(lambda _request: httpx.Response(status, json=body))
    return httpx.AsyncClient(transport=reply, base_url="http://backend.test")


def served(server: DatadogServer | CloudWatchServer) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=_Direct(server), base_url="http://backend.test")


class _Direct(httpx.AsyncBaseTransport):
    def __init__(self, server: DatadogServer | CloudWatchServer) -> None:
        self._server = server

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = self._server.reply(str(request.url), request.headers, request.content)
        return httpx.Response(200, json=body)


def on_datadog(*series: StoredSeries) -> tuple[NamedMetrics, DatadogServer]:
    server = DatadogServer(series)
    return NamedMetrics(Datadog(served(server)), SetClock(NOW)), server


def on_cloudwatch(
    *series: StoredSeries, now: datetime = NOW
) -> tuple[NamedMetrics, CloudWatchServer]:
    server = CloudWatchServer(series, "AWS/Lambda")
    return NamedMetrics(CloudWatchMetrics(cloudwatch(served(server))), SetClock(now)), server


async def swept(metrics: NamedMetrics, product: str) -> Mapping[str, float]:
    found = await metrics.discover([product], HOUR)
    series = (await metrics.sweep(SweepQuery(found.signals, HOUR, 300.0))).series
    return {one.signal: one.points[-1][1] for one in series}


async def test_documented_answer_of_datadog_is_read() -> None:
    metrics = NamedMetrics(Datadog(answering(DOCUMENTED)), SetClock(NOW))
    result = await metrics.query_range(MetricQuery("foo", "system.cpu.idle", HOUR))
    (series,) = result.series
    assert dict(series.labels) == {"host": "foo", "env": "test"}
    assert series.points == ((HOUR.start, 77.62145685254418),)
    assert result.unit == "milliseconds"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"status": "error", "error": "Error parsing query: unable to parse", "series": []}, 200),
        ({"errors": ["Error parsing query: unable to parse"]}, 400),
    ],
)
async def test_error_of_datadog_is_an_error_with_any_status(body: object, status: int) -> None:
    metrics = NamedMetrics(Datadog(answering(body, status)), SetClock(NOW))
    with pytest.raises(InvalidArguments, match="unable to parse"):
        await metrics.query_range(MetricQuery("foo", "system.cpu.idle", HOUR))


async def test_query_of_datadog_is_rolled_up_and_counts_come_per_second() -> None:
    metrics, server = on_datadog(stored("trace.http.request.hits", 120.0, service="checkout"))
    query = MetricQuery("checkout", "trace.http.request.hits", HOUR, step_s=60.0)
    result = await metrics.query_range(query)
    assert server.queries == [
        "sum:trace.http.request.hits{service IN (checkout)} by {service,env}.as_count().rollup(sum, 60)"
    ]
    assert {value for _at, value in result.series[0].points} == {2.0}
    assert result.unit == "per second"


async def test_signals_of_datadog_are_the_meaningful_metrics() -> None:
    metrics, _server = on_datadog(
        stored("trace.http.request.hits", 60.0, service="checkout"),
        stored("trace.http.request.errors", 6.0, service="checkout"),
        stored("trace.http.request.duration", 0.2, service="checkout"),
        stored("kubernetes.cpu.usage.total", 0.5, service="checkout"),
        stored("datadog.agent.running", 1.0, service="checkout"),
    )
    found = await metrics.discover(["checkout", "nowhere"], HOUR)
    roles = {signal.metric: signal.role for signal in found.signals}
    assert roles == {
        "trace.http.request.hits": "traffic",
        "trace.http.request.errors": "errors",
        "trace.http.request.duration": "latency",
        "kubernetes.cpu.usage.total": "cpu",
    }
    assert list(found.without) == ["nowhere"]


@pytest.mark.parametrize("product", ["a}", "a,b", "a) OR (service:b", "*", "ä"])
async def test_product_that_is_not_a_tag_is_never_sent_to_datadog(product: str) -> None:
    metrics, server = on_datadog(stored("trace.http.request.hits", 1.0, service="b"))
    result = await metrics.query_range(MetricQuery(product, "trace.http.request.hits", HOUR))
    assert (list(result.series), [q for q in server.queries if " IN " in q]) == ([], [])


async def test_product_in_capitals_is_found_by_its_tag() -> None:
    metrics, _server = on_datadog(stored("trace.http.request.hits", 60.0, service="checkout"))
    assert await swept(metrics, "Checkout") == {"trace.http.request.hits": 1.0}


async def test_metrics_of_aws_are_read_by_their_meaningful_statistic() -> None:
    lambdas = {"FunctionName": "checkout"}
    metrics, server = on_cloudwatch(
        stored("Invocations", 120.0, **lambdas),
        stored("Errors", 6.0, **lambdas),
        stored("Duration", 40.0, **lambdas),
        stored("ConcurrentExecutions", 3.0, **lambdas),
    )
    assert await swept(metrics, "checkout") == {
        "Invocations": 2.0,
        "Errors": 0.1,
        "Duration": 40.0,
        "Duration_p99": 40.0,
        "ConcurrentExecutions": 3.0,
    }
    asked = {
        (one["MetricStat"]["Metric"]["MetricName"], one["MetricStat"]["Stat"])
        for one in server.asked[-1]["MetricDataQueries"]
    }
    assert asked == {
        ("Invocations", "Sum"), ("Errors", "Sum"), ("Duration", "Average"), ("Duration", "p99"),
        ("ConcurrentExecutions", "Average"),
    }  # fmt: skip


async def test_parts_of_a_product_are_not_counted_twice() -> None:
    whole = {"LoadBalancer": "app/checkout/50dc6c495c0c9188"}
    metrics, _server = on_cloudwatch(
        stored("RequestCount", 60.0, **whole),
        stored("RequestCount", 30.0, **whole, AvailabilityZone="a"),
        stored("RequestCount", 30.0, **whole, AvailabilityZone="b"),
    )
    assert await swept(metrics, "checkout") == {"RequestCount": 1.0}


async def test_old_times_are_read_at_their_retained_step() -> None:
    month = NOW + timedelta(days=30)
    metrics, server = on_cloudwatch(stored("Duration", 40.0, FunctionName="checkout"), now=month)
    result = await metrics.query_range(MetricQuery("checkout", "Duration", HOUR, step_s=60.0))
    assert result.step_s == 300
    assert "step raised from 60 s to 300 s" in result.notes[0]
    assert server.asked[-1]["MetricDataQueries"][0]["MetricStat"]["Period"] == 300


async def test_name_in_two_namespaces_names_both() -> None:
    listed = {
        "Metrics": [
            {"Namespace": namespace, "MetricName": "CPUUtilization",
             "Dimensions": [{"Name": dimension, "Value": "checkout"}]}
            for namespace, dimension in (("AWS/RDS", "DBInstanceIdentifier"), ("AWS/ECS", "ServiceName"))
        ]
    }  # fmt: skip
    metrics = NamedMetrics(CloudWatchMetrics(cloudwatch(answering(listed))), SetClock(NOW))
    found = await metrics.discover(["checkout"], HOUR)
    assert {(signal.metric, signal.role) for signal in found.signals} == {
        ("AWS_RDS:CPUUtilization", "cpu"),
        ("AWS_ECS:CPUUtilization", "cpu"),
    }


@pytest.mark.parametrize("text", ["sum(rate(x[5m]))", 'a{b=~"c"}', "up or down"])
async def test_query_in_promql_names_the_alternative(text: str) -> None:
    metrics, server = on_datadog()
    with pytest.raises(InvalidArguments, match=r"Datadog has no PromQL.*get_metrics.*find_metrics"):
        await metrics.promql(text, HOUR, None)
    assert server.queries == []


async def test_gauges_of_hosts_add_up_where_their_metric_says_so() -> None:
    metrics, server = on_datadog(stored("http.connections", 7.0, service="checkout"))
    assert await swept(metrics, "checkout") == {"http.connections": 7.0}
    assert server.queries[-1].startswith("sum:http.connections{")
    assert server.queries[-1].endswith(".rollup(avg, 300)")


async def test_address_is_short_for_any_number_of_products() -> None:
    products = [f"a-rather-long-name-of-a-service-{number}" for number in range(60)]
    metrics, server = on_datadog(
        *(stored("http.requests", 60.0, service=product) for product in products),
        *(stored("http.request.duration", 0.1, service=product) for product in products),
    )
    found = await metrics.discover(products, HOUR)
    swept_all = await metrics.sweep(SweepQuery(found.signals, HOUR, 300.0))
    assert len({one.product for one in swept_all.series}) == 60
    assert (swept_all.requests, max(map(len, server.queries)) < 4000) == (2, True)


async def test_list_of_metrics_is_requested_once() -> None:
    metrics, server = on_datadog(stored("trace.http.request.hits", 60.0, service="checkout"))
    for _ in range(3):
        await metrics.discover(["checkout"], HOUR)
    assert len(server.queries) == 1
    assert json.dumps(server.queries).count("service IN (checkout)") == 1
