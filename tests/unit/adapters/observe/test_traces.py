"""What trace stores get odd: spellings, absent traces, late spans, cut traces, foreign bodies."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import httpx
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.jaeger import JaegerTraces
from adapters.observe.jaeger_answer import JaegerTrace
from adapters.observe.otlp_answer import ResourceSpans, spans_of
from adapters.observe.tempo import TempoTraces
from adapters.observe.trace_ids import hex_id, spellings
from bot.app.backend_selection import make_observed
from bot.settings.model import Settings
from tests.fakes.capabilities import FakeClock, FakeDeploys, FakeHistory
from tests.fakes.jaeger_server import JaegerServer
from tests.fakes.tempo_server import TempoServer
from tools.capabilities import Span, Trace, Traces
from tools.errors import CapabilityUnavailable, UpstreamFailed

LONG = "4bf92f3577b34da6a3ce929d0e0e4736"
SHORT = "0000000000000000a3ce929d0e0e4736"
SPAN = Span("00f067aa0ba902b7", "", "checkout", "POST /orders", 1_700_000_000_000_000, 5, "ok")

Open = Callable[[web.Application], Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def client_of(
    aiohttp_server: Callable[[web.Application], Awaitable[TestServer]],
) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def opened(app: web.Application) -> httpx.AsyncClient:
            running = await aiohttp_server(app)
            return await stack.enter_async_context(http_client(base_url=str(running.make_url("/"))))

        yield opened


def answering(status: int, body: str, content_type: str = "text/plain") -> web.Application:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(status=status, text=body, content_type=content_type)

    app = web.Application()
    app.router.add_get("/{any:.*}", handler)
    return app


async def test_an_id_of_64_bits_is_found_where_ids_are_text(client_of: Open) -> None:
    server = JaegerServer([Trace(SHORT, (SPAN,))], victoria=True)
    found = await JaegerTraces(await client_of(server.app())).get("a3ce929d0e0e4736")
    assert found == Trace(SHORT, (SPAN,))
    assert server.paths == [f"/api/traces/{SHORT}", f"/api/traces/{SHORT[16:]}"]


def test_a_long_id_has_one_spelling() -> None:
    assert spellings(LONG) == (LONG,)


@pytest.mark.parametrize(
    ("text", "digits", "expected"),
    [
        ("APBnqgupArc=", 16, "00f067aa0ba902b7"),
        ("S/kvNXezTaajzpKdDg5HNg==", 32, LONG),
        ("00F067AA0BA902B7", 16, "00f067aa0ba902b7"),
        ("f067aa0ba902b7", 16, "00f067aa0ba902b7"),
        ("a1b2c3d4e5f6", 16, "0000a1b2c3d4e5f6"),  # as long as base64, and hex
        ("", 16, ""),
    ],
)
def test_ids_come_in_hex_and_base64(text: str, digits: int, expected: str) -> None:
    assert hex_id(text, digits) == expected


async def test_tempo_waits_once_for_late_spans(client_of: Open) -> None:
    server = TempoServer([Trace(LONG, (SPAN,))], late=1)
    traces = TempoTraces(await client_of(server.app()), again_after_s=0)
    assert await traces.get(LONG) == Trace(LONG, (SPAN,))
    assert len(server.paths) == 2


async def test_an_older_tempo_is_probed_once(
    client_of: Open,
) -> None:
    server = TempoServer([Trace(LONG, (SPAN,))], has_v2=False)
    traces = TempoTraces(await client_of(server.app()), again_after_s=0)
    await traces.get(LONG)
    await traces.get(LONG)
    assert server.paths == [f"/api/traces/{LONG}"] * 2


async def test_a_trace_cut_by_tempo_is_reported(client_of: Open) -> None:
    server = TempoServer([Trace(LONG, (SPAN,))], partial="trace exceeds max size")
    found = await TempoTraces(await client_of(server.app())).get(LONG)
    assert found is not None
    assert found.notes == ("PARTIAL: trace exceeds max size",)


async def test_the_tenant_is_sent_to_tempo(client_of: Open) -> None:
    server = TempoServer([Trace(LONG, (SPAN,))], tenant="shop")
    client = await client_of(server.app())
    assert await TempoTraces(client, "shop").get(LONG) is not None
    with pytest.raises(UpstreamFailed, match="no org id"):
        await TempoTraces(client).get(LONG)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, "context deadline exceeded"),
        (404, "404 page not found"),
        (200, "<html>sign in</html>"),
        (200, '{"trace": ' + "[" * 5000),
        (200, '{"data": "no", "trace": "no", "result": "no"}'),
    ],
)
@pytest.mark.parametrize("kind", ["jaeger v1", "jaeger v3", "tempo"])
async def test_an_answer_that_is_not_a_trace_is_a_failure(
    client_of: Open, kind: str, status: int, body: str
) -> None:
    client = await client_of(answering(status, body))
    kinds: dict[str, Traces] = {
        "jaeger v1": JaegerTraces(client),
        "jaeger v3": JaegerTraces(client, "v3"),
        "tempo": TempoTraces(client, again_after_s=0),
    }
    with pytest.raises(UpstreamFailed) as failure:
        await kinds[kind].get(LONG)
    assert failure.value.status == status


@pytest.mark.parametrize(
    "body", ['{"data":null,"errors":[{"code":404}]}', '{"data":[]}', '{"data":[{"spans":[]}]}']
)
async def test_an_empty_jaeger_answer_has_three_shapes(client_of: Open, body: str) -> None:
    status = 404 if "404" in body else 200
    assert await JaegerTraces(await client_of(answering(status, body))).get(LONG) is None


async def test_an_unreachable_store_is_unavailable(unused_tcp_port: int) -> None:
    async with http_client(base_url=f"http://127.0.0.1:{unused_tcp_port}") as client:
        with pytest.raises(CapabilityUnavailable):
            await JaegerTraces(client).get(LONG)


def jaeger_span(**fields: object) -> Span:
    raw = {"traceID": LONG, "spanID": "1", "processID": "p1", **fields}
    body = {"spans": [raw], "processes": {"p1": {"serviceName": "checkout"}}}
    (span,), _notes = JaegerTrace.model_validate_json(orjson.dumps(body)).read()
    return span


@pytest.mark.parametrize("field", ["tags", "logs", "references", "warnings", "operationName"])
def test_a_null_field_of_a_jaeger_span_counts_as_absent(field: str) -> None:
    assert jaeger_span(**{field: None}).service == "checkout"


def test_null_processes_leave_the_spans_readable() -> None:
    body = {"spans": [{"traceID": LONG, "spanID": "1"}], "processes": None, "warnings": None}
    spans, notes = JaegerTrace.model_validate_json(orjson.dumps(body)).read()
    assert ([span.service for span in spans], notes) == ([""], ())


@pytest.mark.parametrize("odd", [None, 7, "x", {"startTime": "soon"}, {"tags": 3}])
def test_one_odd_span_is_counted_and_does_not_hide_the_rest(odd: object) -> None:
    body = {"spans": [odd, {"traceID": LONG, "spanID": "1"}]}
    spans, notes = JaegerTrace.model_validate_json(orjson.dumps(body)).read()
    assert (len(spans), notes) == (1, ("1 of 2 spans could not be read",))


@pytest.mark.parametrize(
    ("value", "status"),
    [(True, "error"), ("true", "error"), (False, "unset"), ("false", "unset"), ("unset", "unset")],
)
def test_an_error_tag_may_be_a_word(value: object, status: str) -> None:
    assert jaeger_span(tags=[{"key": "error", "value": value}]).status == status


def test_the_parent_is_the_first_child_of_in_the_same_trace() -> None:
    other = {"refType": "CHILD_OF", "traceID": SHORT, "spanID": "a"}
    follows = {"refType": "FOLLOWS_FROM", "traceID": LONG, "spanID": "b"}
    child = {"refType": "CHILD_OF", "traceID": LONG.upper(), "spanID": "c"}
    assert jaeger_span(references=[other, follows, child]).parent_id == "c".zfill(16)
    assert jaeger_span(references=[other, follows]).parent_id == "b".zfill(16)
    assert jaeger_span(references=[other]).parent_id == ""


def test_a_failed_span_has_the_message_of_its_log() -> None:
    fields = [{"key": "event", "value": "exception"}, {"key": "exception.message", "value": "boom"}]
    tags = [{"key": "error", "value": True}, {"key": "http.status_code", "value": 503}]
    span = jaeger_span(tags=tags, logs=[{"fields": fields}])
    assert (span.message, span.tags) == ("boom", {"http.status_code": "503"})


def otlp_span(**fields: object) -> Span:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "checkout"}}]}
    body = {"resource": resource, "scopeSpans": [{"spans": [fields]}]}
    (span,) = spans_of([ResourceSpans.model_validate_json(orjson.dumps(body))])
    return span


@pytest.mark.parametrize("field", ["attributes", "events", "status", "name"])
def test_a_null_field_of_an_otlp_span_counts_as_absent(field: str) -> None:
    assert otlp_span(**{field: None}).duration_us >= 0


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (2, "error"),
        ("STATUS_CODE_ERROR", "error"),
        (1, "ok"),
        ("STATUS_CODE_OK", "ok"),
        (0, "unset"),
    ],
)
def test_enums_are_words_or_numbers(code: object, status: str) -> None:
    assert otlp_span(status={"code": code}).status == status


def test_an_omitted_field_has_its_default() -> None:
    assert otlp_span(status={}) == Span("", "", "checkout", "", 0, 0)


def test_a_parent_of_zero_bytes_is_no_parent() -> None:
    assert otlp_span(parentSpanId="AAAAAAAAAAA=").parent_id == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"intValue": "9007199254740993"}, "9007199254740993"),
        ({"boolValue": True}, "true"),
        ({"doubleValue": 0.5}, "0.5"),
        ({"arrayValue": {"values": [{"stringValue": "a"}]}}, '{"values":[{"stringValue":"a"}]}'),
        ({}, ""),
    ],
)
def test_attributes_have_types(value: object, text: str) -> None:
    assert otlp_span(attributes=[{"key": "k", "value": value}]).tags == {"k": text}


def test_an_exception_event_gives_the_error() -> None:
    event = {"attributes": [{"key": "exception.message", "value": {"stringValue": "boom"}}]}
    assert otlp_span(events=[event], status={"code": 2}).message == "boom"


@pytest.mark.parametrize(
    ("traces", "kind"),
    [
        ({"kind": "jaeger", "url": "http://jaeger:16686", "api": "v3"}, JaegerTraces),
        ({"kind": "tempo", "url": "http://tempo:3200", "tenant": "shop"}, TempoTraces),
        ({"kind": "none"}, type(None)),
    ],
)
async def test_the_configured_store_is_asked(traces: dict[str, str], kind: type) -> None:
    settings = Settings.model_validate({"observe": {"traces": traces}})
    async with AsyncExitStack() as stack:
        observed = make_observed(settings, FakeClock(), FakeDeploys(), FakeHistory(), stack)(
            (), "incident-x"
        )
        assert isinstance(observed.traces, kind)
