"""Stores of logs with fields: the vendors' own examples, the queries, and their limits."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.cloudwatch_logs import CloudWatchLogs
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.elasticsearch import Elasticsearch, LogFields
from adapters.observe.field_logs import FieldLogs
from adapters.observe.instants import ns_of, ns_text, to_ns
from adapters.observe.log_source import LogSource, Wanted
from adapters.observe.victorialogs import VictoriaLogs
from tests.fakes.aws import cloudwatch_logs
from tests.fakes.cloudwatch_logs_server import CloudWatchLogsServer, refused
from tests.fakes.elasticsearch_server import ElasticsearchServer
from tests.fakes.victorialogs_server import VictoriaLogsServer
from tools.capabilities import Interval, LogLine, LogQuery, LogSweepQuery
from tools.errors import InvalidArguments, UpstreamFailed

START = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
HOUR = Interval(START, START + timedelta(hours=1))
ALWAYS = Wanted("app", ("nginx",), 0, to_ns(HOUR.end))
MINUTE_NS = 60 * 10**9


def at(minute: int) -> str:
    return ns_text(to_ns(START) + minute * MINUTE_NS)


def answering(body: str | bytes, status: int = 200) -> httpx.AsyncClient:
    reply = httpx.MockTransport(lambda _request: httpx.Response(status, content=body))
    return httpx.AsyncClient(transport=reply, base_url="http://backend.test")


@asynccontextmanager
async def opened(
    app: web.Application, make: Callable[[httpx.AsyncClient], LogSource], field: str = ""
) -> AsyncIterator[FieldLogs]:
    async with TestServer(app) as server, http_client(base_url=str(server.make_url("/"))) as client:
        yield FieldLogs(make(client), UnsealedCodec(), field)


async def all_lines(logs: FieldLogs, query: LogQuery) -> Sequence[LogLine]:
    page = await logs.query(query)
    lines = list(page.lines)
    while page.next_cursor:
        page = await logs.query(replace(query, cursor=page.next_cursor))
        lines += page.lines
    return lines


async def test_documented_answer_of_victorialogs_is_read() -> None:
    # https://docs.victoriametrics.com/victorialogs/querying/#querying-logs
    documented = (
        '{"_msg":"error: disconnect from 19.54.37.22: Auth fail [preauth]","_stream":"{}",'
        '"_time":"2023-01-01T13:32:13Z"}\n'
        '{"_msg":"some other error","_stream":"{}","_time":"2023-01-01T13:32:15.123456789Z"}\n'
    )
    newest = await VictoriaLogs(answering(documented)).newest(ALWAYS, 10)
    assert [(one.ts_ns, one.line) for one in newest.entries] == [
        (1672579933 * 10**9, "error: disconnect from 19.54.37.22: Auth fail [preauth]"),
        (1672579935123456789, "some other error"),
    ]


async def test_documented_answer_of_elasticsearch_is_read() -> None:
    # https://www.elastic.co/guide/en/elasticsearch/reference/8.9/search-fields.html, with the sort
    # values of .../sort-search-results.html#_sorting_numeric_types
    documented = {
        "took": 2, "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {
            "total": {"value": 1, "relation": "eq"}, "max_score": 1.0,
            "hits": [
                {
                    "_index": "my-index-000001", "_id": "0", "_score": 1.0,
                    "fields": {"user.id": ["kimchy"], "@timestamp": ["4098435132000"],
                               "http.response.bytes": [1070000], "message": ["GET /search"]},
                    "sort": [1516729294000000000],
                }
            ],
        },
    }  # fmt: skip
    store = Elasticsearch(answering(json.dumps(documented)), "my-index-000001")
    (entry,) = (await store.newest(ALWAYS, 10)).entries
    assert (entry.ts_ns, entry.line) == (1516729294000000000, "GET /search")


async def test_documented_refusal_of_elasticsearch_is_quoted() -> None:
    # https://www.elastic.co/guide/en/elasticsearch/reference/8.9/rest-api-compatibility.html has its shape
    documented = {
        "error": {
            "root_cause": [{"type": "index_not_found_exception", "reason": "no such index [logs]"}],
            "type": "index_not_found_exception",
            "reason": "no such index [logs]",
        },
        "status": 404,
    }
    store = Elasticsearch(answering(json.dumps(documented), 404), "logs")
    with pytest.raises(UpstreamFailed, match=r"index_not_found_exception: no such index \[logs\]"):
        await store.newest(ALWAYS, 10)


async def test_identical_lines_are_neither_lost_nor_merged() -> None:
    row = {"_time": at(1), "_msg": "again", "service.name": "checkout"}
    rows = [row] * 7 + [{**row, "_time": at(2)}] * 3
    async with opened(VictoriaLogsServer(rows).app(), VictoriaLogs) as logs:
        lines = await all_lines(logs, LogQuery("checkout", HOUR, limit=2))
    assert [line.ts_ns for line in lines] == [ns_of(at(2))] * 3 + [ns_of(at(1))] * 7


@pytest.mark.parametrize("text", ['a" or "', '|= `x` |~ `a"b|.*`', "); drop", "a | limit 1"])
async def test_filter_cannot_escape_its_place(text: str) -> None:
    rows = [
        {"_time": at(1), "_msg": "secret of payments", "service.name": "payments"},
        {"_time": at(1), "_msg": "mine", "service.name": "checkout"},
    ]
    server = VictoriaLogsServer(rows)
    async with opened(server.app(), VictoriaLogs) as logs:
        assert (await logs.query(LogQuery("checkout", HOUR, text))).lines == ()
    assert server.queries[-1].count('"service.name":in("checkout")') == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("timeout", ["read timeout of stock"]),
        ("Timeout", ["TimeoutException in cart"]),
        ("out of st", ["read timeout of stock"]),
        ('|= "in" != "cart"', ["nothing in particular"]),
        ("|~ `T\\w+Ex`", ["TimeoutException in cart"]),
    ],
)
async def test_lines_are_matched_where_analysed_words_cannot_decide(
    text: str, found: list[str]
) -> None:
    messages = ["read timeout of stock", "TimeoutException in cart", "nothing in particular"]
    documents = [
        {"@timestamp": at(number), "message": message, "service.name": "checkout"}
        for number, message in enumerate(messages)
    ]
    app = ElasticsearchServer(documents).app()
    async with opened(app, lambda c: Elasticsearch(c, "logs-*")) as logs:
        lines = await all_lines(logs, LogQuery("checkout", HOUR, text))
        swept = await logs.sweep(LogSweepQuery(["checkout"], HOUR, filter=text))
    assert [line.message for line in lines] == found
    assert dict(swept.counts) == {"checkout": len(found)}
    assert "cannot search by this filter" in swept.notes[-1]


async def test_page_with_few_matches_says_how_far_it_searched() -> None:
    class Few(Elasticsearch):
        most = 10

    documents = [
        {"@timestamp": at(number % 60), "message": f"line {number}", "service.name": "checkout"}
        for number in range(240)
    ]
    app = ElasticsearchServer(documents).app()
    async with opened(app, lambda c: Few(c, "logs-*")) as logs:
        page = await logs.query(LogQuery("checkout", HOUR, "|~ `line 0$`"))
        lines = await all_lines(logs, LogQuery("checkout", HOUR, "|~ `line 0$`"))
    assert (page.lines, bool(page.next_cursor)) == ((), True)
    assert "looked through" in page.notes[0]
    assert [line.message for line in lines] == ["line 0"]


async def test_levels_are_found_by_field_by_number_or_in_the_line() -> None:
    documents = [
        {"@timestamp": at(1), "message": "a", "service.name": "checkout", "log.level": "ERROR"},
        {"@timestamp": at(2), "message": "b", "service.name": "checkout", "log.level": "info"},
        {"@timestamp": at(3), "message": "ERROR c", "service.name": "checkout"},
        {
            "@timestamp": at(4),
            "message": "error of d",
            "service.name": "checkout",
            "log.level": "info",
        },
    ]
    server = ElasticsearchServer(documents, {"level": "long"})
    server.documents.append({"@timestamp": at(5), "message": "e", "level": "x"})
    async with opened(server.app(), lambda c: Elasticsearch(c, "logs-*")) as logs:
        lines = await all_lines(logs, LogQuery("checkout", HOUR, min_level="error"))
    assert [line.message for line in lines] == ["ERROR c", "a"]
    asked = json.dumps(server.searches[-1])
    assert '{"terms": {"level": [50, 60]}}' in asked


@pytest.mark.parametrize(
    ("message", "notes"), [("no word of it", ["states a level"]), ("INFO all is well", [])]
)
async def test_lines_without_levels_report_none(message: str, notes: list[str]) -> None:
    row = {"_time": at(1), "_msg": message, "app": "checkout"}
    async with opened(VictoriaLogsServer([row]).app(), VictoriaLogs) as logs:
        page = await logs.query(LogQuery("checkout", HOUR, min_level="error"))
    assert (page.lines, page.total_matches) == ((), 0)
    assert [words for words in notes if words in page.notes[0]] == notes
    assert len(page.notes) == len(notes)


async def test_earlier_time_is_served_by_the_wider_query() -> None:
    server = VictoriaLogsServer([{"_time": at(1), "_msg": "a", "app": "checkout"}])
    async with opened(server.app(), VictoriaLogs) as logs:
        for hours in (0, 1, 5):
            end = HOUR.end - timedelta(hours=hours)
            found = await logs.discover(["checkout"], Interval(end - timedelta(hours=1), end))
            assert list(found.without) == []
    assert len(server.queries) == 2


async def test_store_without_a_product_field_is_reported() -> None:
    rows = [{"_time": at(1), "_msg": "a", "colour": "red"}]
    async with opened(VictoriaLogsServer(rows).app(), VictoriaLogs) as logs:
        with pytest.raises(InvalidArguments, match="no field names products"):
            await logs.query(LogQuery("checkout", HOUR))


async def test_configured_field_names_are_used() -> None:
    document = {
        "@timestamp": at(1), "body": "refused", "team.service": "checkout", "sev": "Warning",
        "node": "n1", "tid": "abc",
    }  # fmt: skip
    fields = LogFields(message="body", level="sev", host="node", trace_id="tid")
    app = ElasticsearchServer([document]).app()
    async with opened(app, lambda c: Elasticsearch(c, "x", fields), "team.service") as logs:
        (line,) = await all_lines(logs, LogQuery("checkout", HOUR, min_level="warn"))
    assert (line.message, line.level, line.host, line.trace_id) == ("refused", "warn", "n1", "abc")


async def test_disabled_full_text_search_is_explained() -> None:
    why = "[wildcard] queries cannot be executed when 'search.allow_expensive_queries' is set to false."
    body = {"error": {"root_cause": [{"type": "exception", "reason": why}]}, "status": 400}
    with pytest.raises(InvalidArguments, match="leave the filter out"):
        await Elasticsearch(answering(json.dumps(body), 400), "x").newest(ALWAYS, 1)


async def test_documented_answer_of_cloudwatch_logs_is_read() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetQueryResults.html
    documented = {
        "results": [
            [
                {"field": "@timestamp", "value": "2026-11-21 14:01:00.250"},
                {"field": "@message", "value": "connection refused\n"},
                {"field": "@log", "value": "123456789012:/ecs/prod-checkout"},
                {"field": "@ptr", "value": "CjoKIQoWMTIzNDU2Nzg5MDEyOi9l"},
            ]
        ],
        "statistics": {
            "bytesScanned": 81349723,
            "recordsMatched": 360851,
            "recordsScanned": 610956,
        },
        "status": "Complete",
        "queryId": "12ab3456-12ab-123a-789e-1234567890ab",
    }
    source = CloudWatchLogs(cloudwatch_logs(answering(json.dumps(documented))), polls_s=(0.0,))
    wanted = Wanted("@log", ("/ecs/prod-checkout",), to_ns(HOUR.start), to_ns(HOUR.end))
    (entry,) = (await source.newest(wanted, 10)).entries
    assert (entry.ts_ns, entry.line) == (ns_of("2026-11-21T14:01:00.25Z"), "connection refused")
    assert entry.labels == {"@log": "/ecs/prod-checkout"}


@pytest.mark.parametrize("at", ["2026-11-21 14:01:00.000", "1795269660000"])
async def test_time_of_cloudwatch_is_read_in_all_its_forms(at: str) -> None:
    rows = [[{"field": "@timestamp", "value": at}, {"field": "@message"}]]
    body = {"results": rows, "status": "Complete", "queryId": "1", "nextToken": None}
    source = CloudWatchLogs(cloudwatch_logs(answering(json.dumps(body))), polls_s=(0.0,))
    wanted = Wanted("@log", ("/ecs/prod-checkout",), to_ns(HOUR.start), to_ns(HOUR.end))
    (entry,) = (await source.newest(wanted, 10)).entries
    assert (entry.ts_ns, entry.line) == (ns_of("2026-11-21T14:01:00Z"), "")


async def test_shared_groups_are_distinguished_by_a_field() -> None:
    events = [
        {"@timestamp": at(1), "@message": "mine / yours", "app": "checkout"},
        {"@timestamp": at(2), "@message": "other", "app": "payments"},
    ]
    server = CloudWatchLogsServer({"/eks/application": events, "/rds/error": events})
    made: list[CloudWatchLogs] = []

    def make(client: httpx.AsyncClient) -> CloudWatchLogs:
        made.append(CloudWatchLogs(cloudwatch_logs(client), ["/eks/"], "app", polls_s=(0.0,)))
        return made[0]

    async with opened(server.app(), make, "app") as logs:
        lines = await all_lines(logs, LogQuery("checkout", HOUR, "mine / yours"))
        (counts,) = await logs.count([LogSweepQuery(["checkout", "payments"], HOUR)])
    assert [line.message for line in lines] == ["mine / yours"]
    assert counts == {"checkout": 1, "payments": 1}
    assert {name for asked in server.started for name in asked["logGroupNames"]} == {
        "/eks/application"
    }


async def test_more_groups_than_fit_a_query_are_asked_in_several() -> None:
    groups = {
        f"/aws/lambda/f{number}": [{"@timestamp": at(number % 60), "@message": f"from {number}"}]
        for number in range(120)
    }
    server = CloudWatchLogsServer(groups)
    products = [f"f{number}" for number in range(120)]
    async with opened(
        server.app(), lambda c: CloudWatchLogs(cloudwatch_logs(c), polls_s=(0.0,)), "@log"
    ) as logs:
        swept = await logs.sweep(LogSweepQuery(products, HOUR))
    assert dict(swept.counts) == dict.fromkeys(products, 1)
    assert len(server.started) == 3


@pytest.mark.parametrize(("busy", "answered"), [(2, True), (3, False)])
async def test_throttled_request_is_asked_again_twice(busy: int, answered: bool) -> None:
    asked: list[Any] = []

    async def throttled(request: web.Request) -> web.Response:
        asked.append(request)
        if len(asked) <= busy:
            return refused("ThrottlingException", "Rate exceeded")
        return web.json_response({"logGroups": [{"logGroupName": "/ecs/checkout"}]})

    app = web.Application()
    app.router.add_post("/", throttled)
    async with opened(app, lambda c: CloudWatchLogs(cloudwatch_logs(c)), "@log") as logs:
        assert await discovers_checkout(logs) is answered
    assert len(asked) == 3
    assert "content-type;host;x-amz-date;x-amz-target" in asked[0].headers["authorization"]


async def discovers_checkout(logs: FieldLogs) -> bool:
    try:
        return list((await logs.discover([], HOUR)).products) == ["checkout"]
    except UpstreamFailed as error:
        assert "ThrottlingException: Rate exceeded" in str(error)  # noqa: PT017
        return False
