"""An answer in which its server left out a part, or an error behind a status of 200: Kortex counts what is
missing, so that nothing is called healthy for it, or reports the error."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from adapters.observe.cloudwatch_metrics import CloudWatchMetrics
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.elasticsearch import Elasticsearch
from adapters.observe.instants import to_ns
from adapters.observe.jaeger import JaegerTraces
from adapters.observe.log_source import Wanted
from adapters.observe.loki import LokiLogs
from adapters.observe.metric_source import SeriesSelection
from adapters.observe.prometheus import PrometheusMetrics
from tests.fakes.aws import cloudwatch
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, LogQuery, TraceQuery
from tools.errors import UpstreamFailed
from tools.outside_json import counting_unread

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
AT = NOW.timestamp() - 60
METRIC = '{"Namespace": "AWS/Lambda", "MetricName": "Duration", "Dimensions": [{"Name": "FunctionName", "Value": "web"}]}'
SPAN = (
    '{"traceID": "ab", "spans": [{"traceID": "ab", "spanID": "1", "operationName": "GET", "startTime": 1795269000000000,'
    ' "duration": 5, "processID": "p"}], "processes": {"p": {"serviceName": "web"}}}'
)
STREAM = f'{{"stream": {{"app": "web"}}, "values": [["{int(AT)}000000000", "refused"]]}}'
ROW = f'{{"metric": {{"job": "web"}}, "values": [[{AT}, "1"]]}}'
Ask = Callable[[httpx.AsyncClient], Awaitable[object]]


async def loki(client: httpx.AsyncClient) -> object:
    return await LokiLogs(client, UnsealedCodec(), '{app="$product"}').query(LogQuery("web", HOUR))


async def elasticsearch(client: httpx.AsyncClient) -> object:
    wanted = Wanted("app", ("web",), to_ns(HOUR.start), to_ns(HOUR.end))
    return await Elasticsearch(client, "a,b:*").newest(wanted, 10)


async def jaeger(client: httpx.AsyncClient) -> object:
    return await JaegerTraces(client).search(TraceQuery("web", HOUR))


async def cloudwatch_metrics(client: httpx.AsyncClient) -> object:
    asked = SeriesSelection("Duration", "avg", "FunctionName", ("web",))
    return await CloudWatchMetrics(cloudwatch(client)).read([asked], HOUR, 60.0)


async def prometheus(client: httpx.AsyncClient) -> object:
    return await PrometheusMetrics(client, SetClock(NOW)).promql("up", HOUR, 60.0)


def results(one: str) -> str:
    whole = f'{{"Id": "q0", "Timestamps": [{AT}], "Values": [5]}}'
    return f'{{"Metrics": [{METRIC}], "MetricDataResults": [{whole}, {one}]}}'


PARTIAL = {
    "Loki, a warning": (
        loki, f'{{"warnings": ["ingester-2 is away"], "data": {{"resultType": "streams", "result": [{STREAM}]}}}}',
    ),
    "Elasticsearch, a cluster": (
        elasticsearch, '{"_clusters": {"total": 2, "successful": 1, "skipped": 1}, "hits": {"hits": []}}',
    ),
    "Jaeger, an error beside traces": (jaeger, f'{{"data": [{SPAN}], "errors": [{{"code": 500, "msg": "x"}}]}}'),
    "CloudWatch, a part": (
        cloudwatch_metrics, results(f'{{"Id": "q0", "Timestamps": [{AT}], "Values": [5], "StatusCode": "PartialData"}}'),
    ),
    "CloudWatch, a value without its time": (
        cloudwatch_metrics, results(f'{{"Id": "q0", "Timestamps": [{AT}], "Values": [5, 6]}}'),
    ),
    "CloudWatch, a time without its value": (
        cloudwatch_metrics, results(f'{{"Id": "q0", "Timestamps": [{AT}, {AT}], "Values": [5]}}'),
    ),
    "VictoriaMetrics, a storage node": (
        prometheus, f'{{"status": "success", "isPartial": true, "data": {{"result": [{ROW}]}}}}',
    ),
    "Thanos, a store": (
        prometheus, f'{{"status": "success", "warnings": ["store-1: refused"], "data": {{"result": [{ROW}]}}}}',
    ),
}  # fmt: skip
FAILED = {
    "Loki": (loki, '{"status": "error", "error": "too many", "data": {"result": []}}'),
    "Loki without data": (loki, '{"status": "error", "error": "too many"}'),
    "Jaeger": (jaeger, '{"data": null, "errors": [{"code": 500, "msg": "too many"}]}'),
    "Prometheus": (prometheus, '{"status": "error", "error": "too many", "data": {"result": []}}'),
}


def answering(body: str) -> httpx.AsyncClient:
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, text=body))
    return httpx.AsyncClient(transport=transport, base_url="http://backend.test")


@pytest.mark.parametrize(("ask", "body"), PARTIAL.values(), ids=PARTIAL)
async def test_an_answer_without_a_part_counts_what_is_missing(ask: Ask, body: str) -> None:
    with counting_unread() as unread:
        await ask(answering(body))
    assert unread.count == 1


@pytest.mark.parametrize(("ask", "body"), FAILED.values(), ids=FAILED)
async def test_an_error_with_a_status_of_success_is_an_error(ask: Ask, body: str) -> None:
    with pytest.raises(UpstreamFailed, match="too many"):
        await ask(answering(body))
