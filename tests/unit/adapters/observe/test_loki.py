"""Loki's habits are handled: nanoseconds, ties, text errors, selectors that cannot be widened."""

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.client import http_client
from adapters.observe.cursor import MAX_TIED, UnsealedCodec
from adapters.observe.instants import from_ns, to_ns
from adapters.observe.loki import LokiLogs
from adapters.observe.loki_selector import Selector
from tests.fakes.loki_server import LokiServer, Stored
from tools.capabilities import Interval, LogLine, LogQuery, LogSweepQuery
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed

START = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
START_NS = to_ns(START)
HOUR = Interval(START, START + timedelta(hours=1))
QUERY = LogQuery("checkout", HOUR)

Serve = Callable[[web.Application], Awaitable[TestServer]]
Open = Callable[..., Awaitable[LokiLogs]]


@pytest.fixture
async def open_loki(aiohttp_server: Serve) -> AsyncIterator[Open]:
    clients: list[httpx.AsyncClient] = []

    async def opened(server: LokiServer | web.Application, **options: str) -> LokiLogs:
        app = server.app() if isinstance(server, LokiServer) else server
        running = await aiohttp_server(app)
        client = http_client(base_url=str(running.make_url("/")))
        clients.append(client)
        return LokiLogs(
            client, UnsealedCodec(), **{"selector": '{service_name="$product"}', **options}
        )

    yield opened
    for client in clients:
        await client.aclose()


def entry(ts_ns: int, line: str, level: str = "info", **labels: str) -> Stored:
    return Stored(
        ts_ns,
        line,
        {"service_name": "checkout", "pod": "checkout-1", **labels},
        {"detected_level": level},
    )


def tied_entries() -> list[Stored]:
    """1,200 lines with 60 distinct timestamps, a nanosecond apart in places, over 6 streams."""
    shuffled = random.Random(3)
    stamps = [START_NS + 10**9 * (number // 2) + number % 2 for number in range(60)]
    entries = [
        entry(shuffled.choice(stamps), f"line {number}", pod=f"checkout-{number % 6}")
        for number in range(1140)
    ]
    entries += [entry(stamp, "one of each", pod="checkout-0") for stamp in stamps]
    shuffled.shuffle(entries)
    return entries


async def all_pages(logs: LokiLogs, query: LogQuery) -> list[LogLine]:
    page = await logs.query(query)
    lines = list(page.lines)
    while page.next_cursor:
        page = await logs.query(replace(query, cursor=page.next_cursor))
        lines.extend(page.lines)
    return lines


@pytest.mark.parametrize("size", [25, 100])
async def test_tied_lines_are_all_delivered_once_newest_first(open_loki: Open, size: int) -> None:
    entries = tied_entries()
    logs = await open_loki(LokiServer(entries))
    lines = await all_pages(logs, replace(QUERY, limit=size))
    assert len(entries) == 1200
    assert sorted((line.ts_ns, line.message) for line in lines) == sorted(
        (stored.ts_ns, stored.line) for stored in entries
    )
    assert [line.ts_ns for line in lines] == sorted((e.ts_ns for e in entries), reverse=True)


async def test_tie_larger_than_a_page_is_read_to_its_end(open_loki: Open) -> None:
    entries = [entry(START_NS, f"line {number}") for number in range(350)]
    lines = await all_pages(await open_loki(LokiServer(entries)), QUERY)
    assert {line.message for line in lines} == {stored.line for stored in entries}
    assert len(lines) == 350


@pytest.mark.parametrize("size", [50, 100])
async def test_tie_larger_than_a_cursor_is_read_to_its_end(open_loki: Open, size: int) -> None:
    tie = [entry(START_NS, f"line {number}") for number in range(MAX_TIED + 200)]
    entries = [*tie, entry(START_NS - 1, "before"), entry(START_NS + 1, "after")]
    interval = Interval(START - timedelta(hours=1), HOUR.end)
    lines = await all_pages(
        await open_loki(LokiServer(entries)), replace(QUERY, interval=interval, limit=size)
    )
    assert sorted(line.message for line in lines) == sorted(stored.line for stored in entries)
    assert (lines[0].message, lines[-1].message) == ("after", "before")


async def test_tie_larger_than_an_answer_says_so(open_loki: Open) -> None:
    entries = [entry(START_NS, f"line {number}") for number in range(80)]
    logs = await open_loki(LokiServer(entries, max_entries=50))
    with pytest.raises(InvalidArguments, match="share the timestamp"):
        await all_pages(logs, QUERY)


@pytest.mark.parametrize("most", [1000, 101, 100, 50, 3])
async def test_lower_limit_of_the_server_is_respected(open_loki: Open, most: int) -> None:
    entries = [entry(START_NS + number, f"line {number}") for number in range(250)]
    lines = await all_pages(await open_loki(LokiServer(entries, max_entries=most)), QUERY)
    assert [line.message for line in lines] == [f"line {n}" for n in range(249, -1, -1)]


# A line, what was pushed or detected with it, and the level that it has.
LEVELLED = [
    ('{"level":"error","msg":"x"}', {}, "error"),
    ('{"msg":"x","severity":"WARNING"}', {}, "warn"),
    ('{"level":50,"msg":"pino"}', {}, "error"),
    ("ts=1 level=warn msg=error", {}, "warn"),
    ("2026-11-21T14:00:00Z ERROR boom", {}, "error"),
    ("16:48:16.545 INFO  t.c.Travel2Controller#129 no error here", {}, "info"),
    ("2026/11/21 14:00:00 [error] 12#0: connect() failed", {}, "error"),
    ("E1121 14:00:00.000001 1 main.go:1] boom", {}, "error"),
    ("GET /a?x=error 200", {}, "unknown"),
    ("hello", {}, "unknown"),
    ("hello", {"detected_level": "error"}, "error"),
    ("level=error", {"detected_level": "info"}, "info"),
    ("level=error", {"detected_level": "unknown"}, "error"),
    ("INFO fine", {"level": "ERROR", "detected_level": "info"}, "error"),
    ("INFO fine", {"severity_text": "Fatal"}, "fatal"),
]


@pytest.mark.parametrize(("line", "metadata", "level"), LEVELLED)
async def test_level_is_read_from_label_metadata_or_line(
    open_loki: Open, line: str, metadata: dict[str, str], level: str
) -> None:
    stored = Stored(START_NS, line, {"service_name": "checkout"}, metadata)
    other = Stored(
        START_NS, "a level is known", {"service_name": "checkout", "n": "2"}, {"level": "info"}
    )
    logs = await open_loki(LokiServer([stored, other]))
    page = await logs.query(replace(QUERY, filter="!= `a level is known`"))
    strict = await logs.query(replace(QUERY, min_level="error", filter="!= `a level is known`"))
    assert [one.level for one in page.lines] == [level]
    assert len(strict.lines) == (level in {"error", "fatal"})


async def test_unknown_level_is_reported(open_loki: Open) -> None:
    entries = [Stored(START_NS + n, f"plain {n}", {"service_name": "checkout"}) for n in range(5)]
    page = await (await open_loki(LokiServer(entries))).query(replace(QUERY, min_level="error"))
    assert page.lines == ()
    assert "none of the 5 newest lines states a level" in page.notes[0]


async def test_no_errors_among_levelled_lines_is_reported_plainly(open_loki: Open) -> None:
    page = await (await open_loki(LokiServer([entry(START_NS, "x")]))).query(
        replace(QUERY, min_level="error")
    )
    assert (page.lines, list(page.notes)) == ((), [])


@pytest.mark.parametrize(
    "labels",
    [
        {"service_name": "checkout"},
        {"app": "checkout", "namespace": "shop"},
        {"job": "shop/checkout"},
        {"pod": "checkout-7d9f8b6c5d-bbbbb"},
        {"team_part": "checkout"},
    ],
    ids=lambda labels: next(iter(labels)),
)
async def test_label_of_a_product_is_found(open_loki: Open, labels: dict[str, str]) -> None:
    there = Stored(START_NS, "mine", labels)
    other = Stored(
        START_NS,
        "other",
        {name: value.replace("checkout", "cart") for name, value in labels.items()},
    )
    logs = await open_loki(LokiServer([there, other]), selector="")
    assert [line.message for line in (await logs.query(QUERY)).lines] == ["mine"]
    found = await logs.discover(["checkout", "nowhere"], HOUR)
    assert (list(found.without), list(found.labels.values())) == (["nowhere"], [1])


STREAMS = {"status": "success", "data": {"resultType": "streams", "result": []}}


@pytest.mark.parametrize(
    "answer", [{"status": 404, "text": "page not found"}, {"body": json.dumps(STREAMS)}]
)
async def test_product_is_read_through_a_proxy_that_allows_only_queries(
    open_loki: Open, answer: dict[str, Any]
) -> None:
    @web.middleware
    async def passes_on_queries_alone(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_query = request.path == "/loki/api/v1/query_range"
        return await handler(request) if is_query else web.Response(**answer)

    app = LokiServer([entry(START_NS, "mine")]).app()
    app.middlewares.append(passes_on_queries_alone)
    logs = await open_loki(app, selector="")

    assert [line.message for line in (await logs.query(QUERY)).lines] == ["mine"]
    with pytest.raises(InvalidArguments, match="Loki does not list its labels"):
        await logs.query(replace(QUERY, product="cart"))
    found = await logs.discover(["checkout"], HOUR)
    assert list(found.without) == ["checkout"]
    assert list(found.notes) == ["Loki did not list its labels; assumed: service_name"]


async def test_chatty_product_leaves_room_for_the_other_products(open_loki: Open) -> None:
    loud = [entry(START_NS + 10**9 + n, f"loud {n}", service_name="loud") for n in range(9000)]
    quiet = [entry(START_NS + n, f"quiet {n}", service_name=f"quiet-{n % 3}") for n in range(30)]
    server = LokiServer([*loud, *quiet])
    logs = await open_loki(server)
    names = ["loud", *(f"quiet-{n}" for n in range(3)), "silent"]
    query = LogSweepQuery(names, HOUR, limit=4000)
    (counts,) = await logs.count([query])
    swept = await logs.sweep(replace(query, counts=counts))
    assert {product: len(lines) for product, lines in swept.lines.items()} == {
        "loud": 3970, "quiet-0": 10, "quiet-1": 10, "quiet-2": 10,
    }  # fmt: skip
    assert swept.counts["loud"] == 9000
    assert "only the newest lines were read of: loud" in swept.notes[0]
    assert len(server.queries) == 2


async def test_lines_are_counted_in_parts_when_one_answer_is_too_small(
    open_loki: Open,
) -> None:
    server = LokiServer([entry(START_NS + n, f"line {n}") for n in range(900)])
    logs = await open_loki(server)

    whole = await logs.sweep(LogSweepQuery(["checkout"], HOUR, limit=901))
    assert (len(whole.lines["checkout"]), server.counted, whole.requests) == (900, [], 1)

    part = await logs.sweep(LogSweepQuery(["checkout"], HOUR, limit=600))
    assert (len(part.lines["checkout"]), part.counts, part.requests) == (600, {"checkout": 900}, 3)
    assert len(server.counted) == 1


async def test_recent_answer_is_reused(open_loki: Open) -> None:
    server = LokiServer([entry(START_NS, "x")])
    logs = await open_loki(server)
    query = LogSweepQuery(["checkout"], HOUR)

    first, again = await logs.sweep(query), await logs.sweep(query)

    assert (again.lines, first.requests, again.requests) == (first.lines, 1, 0)
    assert len(server.queries) == 1


@pytest.mark.parametrize(("most_joined", "requests"), [(100, 1), (1, 4)])
async def test_times_and_levels_are_counted_one_by_one_where_a_joint_query_is_refused(
    open_loki: Open, most_joined: int, requests: int
) -> None:
    early = [entry(START_NS + n, f"early {n}") for n in range(3)]
    late = [entry(START_NS + 1800 * 10**9 + n, f"late {n}", "error") for n in range(5)]
    server = LokiServer([*early, *late])
    server.most_joined = most_joined
    logs = await open_loki(server, selector="")
    half = HOUR.start + timedelta(minutes=30)
    halves = [
        LogSweepQuery(["checkout"], Interval(HOUR.start, half)),
        LogSweepQuery(["checkout", "nowhere"], Interval(half, HOUR.end)),
        LogSweepQuery(["checkout"], HOUR, min_level="error"),
    ]

    assert await logs.count(halves) == [{"checkout": 3}, {"checkout": 5}, {"checkout": 5}]
    assert len(server.counted) == requests


async def test_page_is_capped_at_100_lines(open_loki: Open) -> None:
    logs = await open_loki(LokiServer(tied_entries()))
    page = await logs.query(replace(QUERY, limit=5000))
    assert len(page.lines) == 100
    assert page.next_cursor
    assert page.total_matches is None


async def test_cursor_freezes_the_range_of_its_first_page(open_loki: Open) -> None:
    server = LokiServer([entry(START_NS + number, f"line {number}") for number in range(20)])
    logs = await open_loki(server)
    first = await logs.query(replace(QUERY, limit=15))
    server.entries.append(entry(START_NS + 1_800_000_000_000, "later"))
    slid = Interval(HOUR.start + timedelta(minutes=5), HOUR.end + timedelta(minutes=5))
    rest = await logs.query(LogQuery("checkout", slid, limit=15, cursor=first.next_cursor))
    assert [line.message for line in rest.lines] == [f"line {n}" for n in range(4, -1, -1)]


async def test_request_is_exact_to_the_nanosecond_and_asks_one_more(open_loki: Open) -> None:
    server = LokiServer([entry(START_NS + 123_456_789, "x")])
    logs = await open_loki(server)
    page = await logs.query(replace(QUERY, limit=10))
    assert server.queries[0] == {
        "query": '{service_name="checkout"}',
        "start": str(START_NS),
        "end": str(START_NS + 3600 * 10**9),
        "limit": "11",
        "direction": "backward",
    }
    assert page.lines[0].ts_ns == START_NS + 123_456_789
    assert (page.next_cursor, page.total_matches) == ("", 1)


async def test_end_is_exclusive(open_loki: Open) -> None:
    logs = await open_loki(LokiServer([entry(START_NS, "start"), entry(to_ns(HOUR.end), "end")]))
    page = await logs.query(QUERY)
    assert [line.message for line in page.lines] == ["start"]


async def test_line_carries_level_host_and_trace(open_loki: Open) -> None:
    stored = Stored(
        START_NS,
        "boom",
        {"service_name": "checkout", "pod": "checkout-7"},
        {"detected_level": "WARNING", "trace_id": "ab" * 16},
    )
    page = await (await open_loki(LokiServer([stored]))).query(QUERY)
    assert page.lines == (LogLine(START_NS, "warn", "checkout-7", "boom", "ab" * 16),)


async def test_minimum_level_uses_the_detected_level_in_any_case(open_loki: Open) -> None:
    levels = ["debug", "info", "warn", "ERROR", "fatal", "critical", "unknown"]
    entries = [entry(START_NS + number, level, level) for number, level in enumerate(levels)]
    page = await (await open_loki(LokiServer(entries))).query(replace(QUERY, min_level="error"))
    assert [line.message for line in page.lines] == ["critical", "fatal", "ERROR"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('say "hi" \\o/', ['say "hi" \\o/']),
        ("|~ `h.llo`", ["hello"]),
        ('|= "hello" != "x"', ["hello"]),
        ('  != "hello"', ['say "hi" \\o/']),
    ],
)
async def test_filter_is_text_or_a_pipeline(
    open_loki: Open, text: str, expected: list[str]
) -> None:
    entries = [entry(START_NS, "hello"), entry(START_NS + 1, 'say "hi" \\o/')]
    page = await (await open_loki(LokiServer(entries))).query(replace(QUERY, filter=text))
    assert [line.message for line in page.lines] == expected


@pytest.mark.parametrize(
    "text",
    [
        '{service_name=~".+"}',
        '|= "x" or {service_name=~".+"}',
        '|= "x"[5m]',
        '|= "x" # and the rest is a comment',
        '|= "never closed',
        "| line_format `never closed",
    ],
)
async def test_filter_cannot_escape_its_place(open_loki: Open, text: str) -> None:
    server = LokiServer([])
    logs = await open_loki(server)
    with pytest.raises(InvalidArguments):
        await logs.query(replace(QUERY, filter=text))
    assert server.queries == []


@pytest.mark.parametrize("product", ["", " ", "*", ".*", ".+", "x" * 200, "a\nb"])
async def test_catch_all_and_shapeless_products_are_refused(open_loki: Open, product: str) -> None:
    server = LokiServer([])
    logs = await open_loki(server)
    with pytest.raises(InvalidArguments):
        await logs.query(replace(QUERY, product=product))
    assert server.queries == []


@pytest.mark.parametrize(
    "product", ['x"} or {service_name=~".+', 'checkout",pod=~".+', "a|b", "check.*", 'q"', "\\"]
)
@pytest.mark.parametrize("selector", ['{service_name="$product"}', '{service_name=~"$product"}'])
async def test_product_cannot_widen_the_selector(
    open_loki: Open, product: str, selector: str
) -> None:
    server = LokiServer([entry(START_NS, "secret"), entry(START_NS, "b", service_name="b")])
    logs = await open_loki(server, selector=selector)
    with pytest.raises(InvalidArguments):
        await logs.query(replace(QUERY, product=product))


@given(st.text(min_size=1, max_size=40))
def test_any_accepted_product_is_one_string(product: str) -> None:
    accepted = product.isprintable() and any(char.isalnum() for char in product)
    expected = product.replace("\\", "\\\\").replace('"', '\\"')
    try:
        selector = Selector('{app="$product", env="prod"}').of([product])
    except InvalidArguments:
        selector = ""
    assert selector == (f'{{app="{expected}", env="prod"}}' if accepted else "")


async def test_selector_template_may_use_a_pattern(open_loki: Open) -> None:
    entries = [entry(START_NS, "a", app="checkout-api"), entry(START_NS, "b", app="other")]
    logs = await open_loki(LokiServer(entries), selector='{app=~"$product-.*", pod=~".+"}')
    page = await logs.query(QUERY)
    assert [line.message for line in page.lines] == ["a"]


@pytest.mark.parametrize(
    "template",
    ["", "{}", '{app="x"}', 'app="$product"', '{app!="$product"}', '{a="$product",b="$product"}'],
)
def test_selector_template_must_name_the_product_once(template: str) -> None:
    with pytest.raises(ValueError, match="product"):
        Selector(template)


async def test_unknown_product_lists_the_known_ones(open_loki: Open) -> None:
    logs = await open_loki(
        LokiServer([entry(START_NS, "x"), entry(START_NS, "y", service_name="cart")])
    )
    with pytest.raises(InvalidArguments, match="cart, checkout"):
        await logs.query(replace(QUERY, product="chekout"))


async def test_known_product_without_lines_is_an_empty_page(open_loki: Open) -> None:
    logs = await open_loki(LokiServer([entry(START_NS - 10**9, "before")]))
    page = await logs.query(QUERY)
    assert (page.lines, page.total_matches, page.next_cursor) == ((), 0, "")


async def test_tenant_is_sent_and_a_missing_one_reported(open_loki: Open) -> None:
    server = LokiServer([entry(START_NS, "x")], tenant="shop")
    with_tenant = await open_loki(server, org_id="shop")
    without = await open_loki(server)
    assert len((await with_tenant.query(QUERY)).lines) == 1
    with pytest.raises(UpstreamFailed, match="no org id") as caught:
        await without.query(QUERY)
    assert caught.value.status == 401


async def test_parser_error_reaches_the_model(open_loki: Open) -> None:
    logs = await open_loki(LokiServer([]))
    with pytest.raises(InvalidArguments, match="parse error at line 1, col 19"):
        await logs.query(replace(QUERY, filter="| nonsense ("))


async def test_limit_of_the_backend_reaches_the_model_as_text(open_loki: Open) -> None:
    logs = await open_loki(LokiServer([]))
    wide = Interval(START - timedelta(days=40), START)
    with pytest.raises(UpstreamFailed, match="limit: 30d1h") as caught:
        await logs.query(replace(QUERY, interval=wide))
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        '{"data": []}',
        '{"data": {"resultType": "matrix", "result": []}}',
        '{"data": {"resultType": "streams", "result": [{"values": [[1, "x"]]}]}}',
    ],
)
async def test_answer_that_is_not_a_log_stream_is_a_failure(open_loki: Open, body: str) -> None:
    app = web.Application()

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=body)

    app.router.add_get("/loki/api/v1/query_range", answer)
    with pytest.raises(UpstreamFailed):
        await (await open_loki(app)).query(QUERY)


async def test_old_server_without_categories_is_understood(open_loki: Open) -> None:
    app = web.Application()

    async def answer(_request: web.Request) -> web.Response:
        stream = {"stream": {"level": "error", "host": "h1"}, "values": [[str(START_NS), "x"]]}
        return web.json_response({"data": {"resultType": "streams", "result": [stream]}})

    app.router.add_get("/loki/api/v1/query_range", answer)
    page = await (await open_loki(app)).query(QUERY)
    assert page.lines == (LogLine(START_NS, "error", "h1", "x"),)


async def test_unreachable_server_is_unavailable(unused_tcp_port: int) -> None:
    async with http_client(base_url=f"http://127.0.0.1:{unused_tcp_port}") as client:
        with pytest.raises(CapabilityUnavailable, match="Loki"):
            await LokiLogs(client, UnsealedCodec()).query(QUERY)


@given(st.integers(min_value=0, max_value=4 * 10**18))
def test_nanoseconds_survive_to_the_microsecond(ts_ns: int) -> None:
    assert to_ns(from_ns(ts_ns)) == ts_ns // 1000 * 1000
