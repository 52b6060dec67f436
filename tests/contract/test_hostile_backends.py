"""For any answer of a backend, its reader raises a known error, or returns its entries."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from adapters.observe.aws import Aws
from adapters.observe.cloudwatch_logs import CloudWatchLogs
from adapters.observe.cloudwatch_metrics import CloudWatchMetrics
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.datadog import Datadog
from adapters.observe.elasticsearch import Elasticsearch
from adapters.observe.field_logs import FieldLogs
from adapters.observe.log_source import LogSource
from adapters.observe.metric_source import MetricSource
from adapters.observe.named_metrics import NamedMetrics
from adapters.observe.victorialogs import VictoriaLogs
from tests.fakes.aws import cloudwatch, cloudwatch_logs
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, LogQuery, LogSweepQuery, MetricQuery, SweepQuery
from tools.errors import InvalidArguments, ToolError, UpstreamFailed

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
Answer = Callable[[httpx.Request], httpx.Response]
KINDS = ["victorialogs", "elasticsearch", "cloudwatch logs", "datadog", "cloudwatch"]
CAPS = {"fields": {"service.name": {"keyword": {"type": "keyword"}}}}
GROUPED = {"buckets": [{"key": "checkout", "doc_count": 3}]}
METRIC = {
    "Namespace": "AWS/Lambda",
    "MetricName": "Duration",
    "Dimensions": [{"Name": "FunctionName", "Value": "checkout"}],
}
# What says which products there are: a part of the question, and the answer to it.
SOUND: dict[str, dict[str, Any]] = {
    "victorialogs": {
        "/field_names": {"values": [{"value": "service.name", "hits": 3}]},
        "/field_values": {"values": [{"value": "checkout", "hits": 3}]},
    },
    "elasticsearch": {
        "/_field_caps": CAPS,
        '"size": 0': {"hits": {"hits": []}, "aggregations": {"products": GROUPED}},
    },
    "cloudwatch logs": {
        "DescribeLogGroups": {"logGroups": [{"logGroupName": "/ecs/checkout"}]},
        "StartQuery": {"queryId": "12ab3456-12ab-123a-789e-1234567890ab"},
    },
    "datadog": {"/api/v1/metrics": {"metrics": ["trace.http.request.duration"]}},
    "cloudwatch": {"ListMetrics": {"Metrics": [METRIC]}},
}
HUGE = 1180591620717411303424  # 2 to the 70
NO_TIMES: list[bytes] = [
    json.dumps({"_time": "2026-99-99T99:99:99Z", "_msg": "a", "service.name": "checkout"}).encode(),
    json.dumps({"hits": {"hits": [{"sort": [HUGE], "fields": {"message": ["a"]}}]}}).encode(),
    b'{"hits": {"hits": [{"sort": [1e999], "fields": {}}]}}',
    json.dumps(
        {"status": "Complete", "results": [[{"field": "@timestamp", "value": "x"}]]}
    ).encode(),
    json.dumps(
        {"status": "ok", "series": [{"pointlist": [[HUGE, HUGE]], "query_index": 0}]}
    ).encode(),
    json.dumps({"status": "ok", "series": [{"pointlist": [], "query_index": HUGE}]}).encode(),
    b'{"series": [{"pointlist": [[NaN, NaN], [1e999, -1e999]], "scope": "service:checkout"}]}',
    json.dumps(
        {"MetricDataResults": [{"Id": "q0", "Timestamps": [HUGE, 1], "Values": [HUGE]}]}
    ).encode(),
    b'{"MetricDataResults": [{"Id": "q0", "Timestamps": [NaN, 1e999], "Values": [NaN, 1e999]}]}',
    b'{"MetricDataResults": [{"Id": "q0", "StatusCode": "InternalError"}]}',
]
BODIES: list[bytes] = [
    b"", b"null", b"[]", b"{}", b"0", b'"text"', b"\xff\xfe\x00", b"[" * 1500,
    b'{"hits": ' + b'{"hits": ' * 1500, b'{"_msg": "\\ud800", "_time": "2026-11-21T14:00:00Z"}',
    b'{"hits": {"hits": [{"sort": [1], "fields": {"message": ["\\ud800"]}}]}}',
    b'{"values": [1, null, {}]}', b'{"status": 1}', b'{"status": "Failed"}', b'{"queryId": {}}',
    b'{"status": "error", "error": "no"}', b'{"error": {"type": "x"}, "status": 500}',
    b"<html>sign in</html>", b'{"timed_out": true, "hits": {"hits": []}}', *NO_TIMES,
]  # fmt: skip


def client(answer: Answer) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.MockTransport(answer), base_url="http://backend.test/base"
    )


def source(kind: str, answer: Answer) -> LogSource | MetricSource:
    made: dict[str, Callable[[httpx.AsyncClient], LogSource | MetricSource]] = {
        "victorialogs": VictoriaLogs,
        "elasticsearch": lambda c: Elasticsearch(c, "logs-*"),
        "cloudwatch logs": lambda c: CloudWatchLogs(cloudwatch_logs(c), polls_s=(0.0,)),
        "datadog": Datadog,
        "cloudwatch": lambda c: CloudWatchMetrics(cloudwatch(c)),
    }
    return made[kind](client(answer))


async def all_of(kind: str, answer: Answer) -> AsyncIterator[object]:
    """Everything that its port can be asked, one after the other."""
    made = source(kind, answer)
    if isinstance(made, VictoriaLogs | Elasticsearch | CloudWatchLogs):
        field = getattr(made, "product_field", "")
        logs = FieldLogs(made, UnsealedCodec(), field)
        wanted = LogSweepQuery(["checkout"], HOUR, "error", "timeout")
        yield lambda: logs.query(LogQuery("checkout", HOUR, "timeout", "error"))
        yield lambda: logs.discover([], HOUR)
        yield lambda: logs.count([wanted])
        yield lambda: logs.sweep(wanted)
    else:
        assert isinstance(made, Datadog | CloudWatchMetrics)
        metrics = NamedMetrics(made, SetClock(NOW))
        signals = []
        with suppress(ToolError):
            signals = [*(await metrics.discover(["checkout"], HOUR)).signals]
        yield lambda: metrics.query_range(MetricQuery("checkout", "Duration", HOUR))
        yield lambda: metrics.promql('Duration{FunctionName="checkout"}', HOUR, None, instant=True)
        yield lambda: metrics.discover([], HOUR)
        yield lambda: metrics.sweep(SweepQuery(signals, HOUR, 60.0))


def sound_but(kind: str, last: Answer) -> Answer:
    """Says which products there are, and answers the rest by `last`."""

    def answer(request: httpx.Request) -> httpx.Response:
        asked = f"{request.url} {request.headers.get('x-amz-target')} {request.content.decode()}"
        known = (body for part, body in SOUND[kind].items() if part in asked)
        body = next(known, None)
        return last(request) if body is None else httpx.Response(200, json=body)

    return answer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sound", [True, False], ids=["reading", "discovery"])
async def test_any_answer_raises_only_known_errors(kind: str, sound: bool) -> None:
    for status, body in itertools.product((200, 400, 503), BODIES):

        def answer(_request: httpx.Request, s: int = status, b: bytes = body) -> httpx.Response:
            return httpx.Response(s, content=b)

        async for ask in all_of(kind, sound_but(kind, answer) if sound else answer):
            with suppress(ToolError):
                await ask()  # type: ignore[operator]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_retry_after_is_quoted(kind: str) -> None:
    def busy(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(429, headers={"Retry-After": "7"}, json={"errors": ["slow down"]})

    first = await anext(all_of(kind, busy))
    with pytest.raises(UpstreamFailed, match="wait 7 s") as refused:
        await first()  # type: ignore[operator]
    assert refused.value.status == 429


@pytest.mark.parametrize("kind", KINDS)
async def test_fifty_megabytes_are_not_read(kind: str) -> None:
    sent = 0

    async def much() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(50):
            sent += 1
            yield b" " * (1 << 20)

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=much())

    first = await anext(all_of(kind, answer))
    sent = 0
    with pytest.raises(UpstreamFailed, match="more than"):
        await first()  # type: ignore[operator]
    assert sent < 50


@pytest.mark.parametrize("kind", ["cloudwatch logs", "cloudwatch"])
async def test_endless_paging_ends(kind: str) -> None:
    asked = itertools.count()

    def endless(_request: httpx.Request) -> httpx.Response:
        token = str(next(asked))
        body = {"nextToken": token, "NextToken": token, "Metrics": [METRIC], "logGroups": []}
        return httpx.Response(200, json={**body, "MetricDataResults": []})

    async for ask in all_of(kind, endless):
        with suppress(ToolError):
            await ask()  # type: ignore[operator]
    assert 20 <= next(asked) <= 400


async def test_data_in_endless_parts_is_refused() -> None:
    def endless(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"MetricDataResults": [], "NextToken": "more"})

    metrics = NamedMetrics(
        CloudWatchMetrics(cloudwatch(client(sound_but("cloudwatch", endless)))), SetClock(NOW)
    )
    with pytest.raises(UpstreamFailed, match="parts of one answer"):
        await metrics.query_range(MetricQuery("checkout", "Duration", HOUR))


async def test_cancelling_ends_the_wait_for_a_query() -> None:
    def running(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"status": "Running", "results": []})

    aws: Aws = cloudwatch_logs(client(sound_but("cloudwatch logs", running)))
    found = CloudWatchLogs(aws, polls_s=(30.0,))
    logs = FieldLogs(found, UnsealedCodec(), found.product_field)
    task = asyncio.get_running_loop().create_task(logs.query(LogQuery("checkout", HOUR)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await task
    assert task.cancelled()


@pytest.mark.parametrize("text", ["half \ud800 a character", '|~ "("', "{app}", "x" * 2001])
@pytest.mark.parametrize("kind", KINDS[:3])
async def test_an_invalid_filter_is_never_sent(kind: str, text: str) -> None:
    def never(_request: httpx.Request) -> httpx.Response:
        raise AssertionError("asked")

    made = source(kind, never)
    logs = FieldLogs(made, UnsealedCodec())  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments):
        await logs.query(LogQuery("checkout", HOUR, text))
