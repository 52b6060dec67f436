"""One odd trace, resource or span of Tempo's or Jaeger's answer loses no other, and is counted."""

from datetime import UTC, datetime

import httpx
import pytest

from adapters.observe.jaeger import JaegerTraces
from adapters.observe.tempo import TempoTraces
from tests.odd_json import ODD
from tools.capabilities import Interval, TraceQuery, Traces
from tools.errors import UpstreamFailed
from tools.outside_json import counting_unread

ID = "0af7651916cd43dd8448eb211c80319c"
START = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
QUERY = TraceQuery("checkout", Interval(START, START.replace(hour=15)))
AT_US = round(START.timestamp()) * 1_000_000
# Every field that may be null is.
SPAN = (
    '{"traceId": "TRACE", "spanId": "b7ad6b7169203331", "parentSpanId": null, "name": "pay", '
    '"startTimeUnixNano": "AT000", "endTimeUnixNano": "AT000", "attributes": null, "events": null, "status": null}'
)
RESOURCE = (
    '{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "checkout"}}, '
    '{"key": "k8s.pod.name", "value": null}]}, "scopeSpans": [{"spans": [SPANS]}]}'
)
JAEGER = (
    '{"traceID": "TRACE", "warnings": null, "processes": {"p1": {"serviceName": "checkout", "tags": null}}, '
    '"spans": [{"traceID": "TRACE", "spanID": "b7ad6b7169203331", "operationName": "pay", "processID": "p1", '
    '"startTime": AT, "duration": null, "references": null, "tags": null, "logs": null}]}'
)
SUMMARY = '{"traceID": "TRACE", "rootServiceName": null, "rootTraceName": "pay", "durationMs": null, "serviceStats": null}'


def answering(body: str) -> httpx.AsyncClient:
    text = body.replace("TRACE", ID).replace("AT", str(AT_US))
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, text=text))
    return httpx.AsyncClient(transport=transport, base_url="http://backend.test")


def resources(*spans: str) -> str:
    return RESOURCE.replace("SPANS", ", ".join(spans))


@pytest.mark.parametrize("odd", ODD)
async def test_tempo_finds_the_valid_traces_of_a_search(odd: str) -> None:
    odd = '{"startTimeUnixNano": "x"}' if odd.startswith("{") else odd  # no field is required
    client = answering(f'{{"traces": [{odd}, {SUMMARY}, {odd}], "metrics": null}}')
    with counting_unread() as unread:
        found = await TempoTraces(client).search(QUERY)
    assert unread.count >= 2
    assert [trace.operation for trace in found.traces] == ["pay"]
    assert "2 traces could not be read" in found.notes


@pytest.mark.parametrize("odd", ODD)
async def test_tempo_shows_the_valid_spans_of_a_trace(odd: str) -> None:
    odd = '{"startTimeUnixNano": "x"}' if odd.startswith("{") else odd
    client = answering(f'{{"trace": {{"resourceSpans": [{resources(odd, SPAN, odd)}]}}}}')
    trace = await TempoTraces(client).get(ID)
    assert trace is not None
    assert [span.operation for span in trace.spans] == ["pay"]
    assert trace.notes == ("2 spans could not be read",)


def jaeger(odd: str, api: str) -> Traces:
    if api == "v1":
        return JaegerTraces(answering(f'{{"data": [{odd}, {JAEGER}, {odd}], "errors": null}}'))
    found = f'{{"result": {{"resourceSpans": [{odd}, {resources(SPAN)}, {odd}]}}}}'
    return JaegerTraces(answering(found), "v3")


@pytest.mark.parametrize("api", ["v1", "v3"])
@pytest.mark.parametrize("odd", [one for one in ODD if not one.startswith("{")])
async def test_jaeger_finds_the_valid_traces_of_a_search(odd: str, api: str) -> None:
    with counting_unread() as unread:
        found = await jaeger(odd, api).search(QUERY)
    assert unread.count >= 2
    assert [trace.operation for trace in found.traces] == ["pay"]
    assert "2 traces or spans of Jaeger could not be read" in found.notes


async def test_jaeger_reports_omitted_spans_of_a_found_trace() -> None:
    trace = JAEGER.replace('"spans": [', '"spans": [7, null, ')
    found = await JaegerTraces(answering(f'{{"data": [{trace}]}}')).search(QUERY)
    assert "2 of 3 spans could not be read" in found.notes


@pytest.mark.parametrize(
    "field", ['"tags": [null, 7, {"key": "a"}]', '"references": [null, {"refType": null}, 7]', '"logs": [7, {"fields": [7, {"key": "a"}]}]'],
)  # fmt: skip
async def test_odd_tags_of_a_span_do_not_hide_it(field: str) -> None:
    trace = JAEGER.replace('"logs": null}', f'"logs": null, {field}}}')
    found = await JaegerTraces(answering(f'{{"data": [{trace}]}}')).get(ID)
    assert found is not None
    assert [span.operation for span in found.spans] == ["pay"]


@pytest.mark.parametrize("at", ["-1", "1e300", "18446744073709551616"])
async def test_a_span_without_a_time_is_counted_and_the_valid_one_shown(at: str) -> None:
    odd = f'{{"traceID": "TRACE", "spanID": "b7ad6b7169203332", "startTime": {at}}}'
    trace = JAEGER.replace('"spans": [', f'"spans": [{odd}, ')
    found = await JaegerTraces(answering(f'{{"data": [{trace}]}}')).get(ID)
    assert found is not None
    assert [span.operation for span in found.spans] == ["pay"]
    assert found.notes == ("1 of 2 spans could not be read",)


async def test_jaeger_shows_the_valid_spans_of_a_trace_in_otlp() -> None:
    body = f'{{"result": {{"resourceSpans": [{resources("7", SPAN, "null")}]}}}}'
    trace = await JaegerTraces(answering(body), "v3").get(ID)
    assert trace is not None
    assert [span.operation for span in trace.spans] == ["pay"]
    assert trace.notes == ("2 traces or spans of Jaeger could not be read",)


@pytest.mark.parametrize("api", ["v1", "v3"])
async def test_jaeger_counts_the_entries_that_a_sample_omitted(api: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        odd = '{"data": ["checkout"], "services": ["checkout"]}'
        traces = f'{{"data": [7, {JAEGER}], "result": {{"resourceSpans": [7, {resources(SPAN)}]}}}}'
        text = odd if request.url.path.endswith("services") else traces
        return httpx.Response(200, text=text.replace("TRACE", ID).replace("AT", str(AT_US)))

    client = httpx.AsyncClient(
        transport=httpx.MockTransport(answer), base_url="http://backend.test"
    )
    found = await JaegerTraces(client, "v3" if api == "v3" else "v1").sample(
        ["checkout"], QUERY.interval, 5
    )
    assert len(found.traces) == 1
    assert "1 traces or spans of Jaeger could not be read" in found.notes


@pytest.mark.parametrize("body", ['{"data": [null, 7]}', '{"traces": [null, 7]}'])
async def test_an_answer_without_any_readable_trace_is_an_error(body: str) -> None:
    made = JaegerTraces(answering(body)) if "data" in body else TempoTraces(answering(body))
    with pytest.raises(UpstreamFailed):
        await made.search(QUERY)


async def test_a_sample_requests_names_in_whole_characters() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params["q"])
        return httpx.Response(200, text='{"traces": null}')

    transport = httpx.MockTransport(answer)
    client = httpx.AsyncClient(transport=transport, base_url="http://backend.test")
    await TempoTraces(client).sample(["k8s.cart", "größe\U0001f600"], QUERY.interval, 2)

    assert asked == ['{resource.service.name=~"k8s\\\\.cart|größe\U0001f600"}']
