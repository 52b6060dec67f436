"""Prometheus's habits are handled: limits, rates, NaN, envelopes, silence that means two things."""

import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.client import http_client
from adapters.observe.metric_shape import MAX_STEPS, step_for, unit_of
from adapters.observe.prometheus import PrometheusMetrics
from tests.fakes.prometheus_server import PrometheusServer, StoredSeries
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, MetricQuery
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed
from tools.outside_json import counting_unread

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
HALF_HOUR = Interval(NOW - timedelta(minutes=30), NOW)
QUERY = MetricQuery("checkout", "queue_depth", HALF_HOUR, step_s=60)

Serve = Callable[[web.Application], Awaitable[TestServer]]
Open = Callable[..., Awaitable[PrometheusMetrics]]


@pytest.fixture
async def open_metrics(aiohttp_server: Serve) -> AsyncIterator[Open]:
    clients: list[httpx.AsyncClient] = []

    async def opened(
        server: PrometheusServer | web.Application, **options: Any
    ) -> PrometheusMetrics:
        app = server.app() if isinstance(server, PrometheusServer) else server
        running = await aiohttp_server(app)
        client = http_client(base_url=str(running.make_url("/")))
        clients.append(client)
        return PrometheusMetrics(client, SetClock(NOW), **{"product_label": "service", **options})

    yield opened
    for client in clients:
        await client.aclose()


def series(name: str, values: list[float], every_s: float = 60.0, **labels: str) -> StoredSeries:
    """Samples that end at NOW."""
    first_s = NOW.timestamp() - every_s * (len(values) - 1)
    samples = [(first_s + every_s * number, value) for number, value in enumerate(values)]
    return StoredSeries(name, {"service": "checkout", **labels}, samples)


def answering(body: str, status: int = 200) -> web.Application:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=body, status=status)

    app = web.Application()
    app.router.add_post("/api/v1/query_range", answer)
    return app


async def test_request_is_a_form_with_the_label_of_the_product(open_metrics: Open) -> None:
    server = PrometheusServer([series("queue_depth", [1.0] * 40, job="api")])
    metrics = await open_metrics(server, product_label="job")
    await metrics.query_range(replace(QUERY, product="api", labels={"zone": 'a"\\b\n'}))
    assert server.forms == [
        {
            "query": 'queue_depth{job="api",zone="a\\"\\\\b\\n"}',
            "start": str(int(HALF_HOUR.start.timestamp())),
            "end": str(int(NOW.timestamp())),
            "step": "60",
        }
    ]


async def test_label_filter_cannot_replace_the_product(open_metrics: Open) -> None:
    server = PrometheusServer([series("queue_depth", [1.0] * 40)])
    await (await open_metrics(server)).query_range(replace(QUERY, labels={"service": "other"}))
    assert server.forms[0]["query"] == 'queue_depth{service="checkout"}'


async def test_counter_becomes_a_rate_over_at_least_four_scrapes(open_metrics: Open) -> None:
    counter = series("requests_total", [float(30 * number) for number in range(200)], every_s=15)
    server = PrometheusServer([counter])
    result = await (await open_metrics(server)).query_range(
        replace(QUERY, metric="requests_total", step_s=15)
    )
    assert server.forms[0]["query"] == 'rate(requests_total{service="checkout"}[60s])'
    assert {value for _at, value in result.series[0].points} == {2.0}
    assert result.unit == "per second"


async def test_rate_over_wide_steps_skips_no_sample(open_metrics: Open) -> None:
    server = PrometheusServer([])
    await (await open_metrics(server)).query_range(
        replace(QUERY, metric="requests_total", step_s=600)
    )
    assert server.forms[0]["query"].endswith("[660s])")


async def test_non_finite_values_are_empty(open_metrics: Open) -> None:
    values = [1.0, math.nan, math.inf, -math.inf, 2.0, 3.0]
    server = PrometheusServer([series("queue_depth", values)])
    interval = Interval(NOW - timedelta(minutes=5), NOW)
    result = await (await open_metrics(server)).query_range(replace(QUERY, interval=interval))
    assert [value for _at, value in result.series[0].points] == [1.0, None, None, None, 2.0]


async def test_warnings_of_the_backend_are_notes(open_metrics: Open) -> None:
    server = PrometheusServer([series("queue_depth", [1.0] * 40)], warnings=["partial response"])
    result = await (await open_metrics(server)).query_range(QUERY)
    assert list(result.notes) == ["partial response"]


async def test_series_that_ends_early_is_named(open_metrics: Open) -> None:
    gone = series("queue_depth", [1.0] * 40, pod="b")
    gone = replace(gone, samples=gone.samples[:-15])
    server = PrometheusServer([series("queue_depth", [1.0] * 40, pod="a"), gone])
    result = await (await open_metrics(server)).query_range(QUERY)
    assert len(result.series) == 2
    assert len(result.notes) == 1
    assert "pod=b" in result.notes[0]
    assert "11 min before the end" in result.notes[0]


async def test_range_into_the_future_is_not_stale(open_metrics: Open) -> None:
    server = PrometheusServer([series("queue_depth", [1.0] * 40)])
    ahead = Interval(HALF_HOUR.start, NOW + timedelta(minutes=9))
    result = await (await open_metrics(server)).query_range(replace(QUERY, interval=ahead))
    assert list(result.notes) == []


async def test_sample_after_now_is_not_shown(open_metrics: Open) -> None:
    server = PrometheusServer([series("queue_depth", [1.0] * 40)])
    ahead = Interval(HALF_HOUR.start, NOW + timedelta(minutes=9))
    result = await (await open_metrics(server)).query_range(replace(QUERY, interval=ahead))
    assert max(at for at, _value in result.series[0].points) <= NOW


async def test_all_series_are_ranked(open_metrics: Open) -> None:
    server = PrometheusServer(
        [series("queue_depth", [1.0] * 40, pod=f"p{number:02}") for number in range(90)]
    )
    result = await (await open_metrics(server)).query_range(QUERY)
    assert len(result.series) == 90


@pytest.mark.parametrize(("every_s", "window"), [(15, "60s"), (60, "240s"), (300, "1200s")])
async def test_window_is_learned_from_the_samples(
    open_metrics: Open, every_s: int, window: str
) -> None:
    counter = series("requests_total", [float(n) for n in range(200)], every_s=every_s)
    server = PrometheusServer([counter])
    result = await (await open_metrics(server)).query_range(
        replace(QUERY, metric="requests_total", step_s=15)
    )
    assert server.forms[0]["query"] == f'rate(requests_total{{service="checkout"}}[{window}])'
    assert result.series


async def test_window_may_be_set(open_metrics: Open) -> None:
    server = PrometheusServer([])
    metrics = await open_metrics(server, scrape_interval_s=30.0)
    await metrics.query_range(replace(QUERY, metric="requests_total", step_s=15))
    assert server.forms[0]["query"].endswith("[120s])")


@pytest.mark.parametrize(
    ("metric", "beside", "types"),
    [
        ("nginx_ingress_controller_requests", [], {}),
        ("render_seconds_bucket", [], {}),
        ("render_seconds_count", ["render_seconds_sum"], {}),
        ("render_seconds_sum", [], {"render_seconds": "summary"}),
        ("myapp_things", [], {"myapp_things": "counter"}),
    ],
)
async def test_counter_with_any_name_is_a_rate(
    open_metrics: Open, metric: str, beside: list[str], types: dict[str, str]
) -> None:
    grows = [60.0 * number for number in range(40)]
    server = PrometheusServer([series(name, grows) for name in (metric, *beside)], types=types)
    result = await (await open_metrics(server)).query_range(replace(QUERY, metric=metric))
    assert {value for _at, value in result.series[0].points} == {1.0}
    assert "per second" in (result.unit or "")


@pytest.mark.parametrize(
    ("metric", "types"),
    [("myapp_things_total", {"myapp_things_total": "gauge"}), ("row_count", {}), ("cash_sum", {})],
)
async def test_gauge_named_like_a_counter_is_unchanged(
    open_metrics: Open, metric: str, types: dict[str, str]
) -> None:
    server = PrometheusServer([series(metric, [7.0] * 40)], types=types)
    result = await (await open_metrics(server)).query_range(replace(QUERY, metric=metric))
    assert {value for _at, value in result.series[0].points} == {7.0}


@pytest.mark.parametrize(
    ("query", "note"),
    [
        (
            replace(QUERY, metric="queue_dept"),
            "does not exist for product checkout; it has: queue_depth, up",
        ),
        (
            replace(QUERY, labels={"pod": "x"}),
            "metric queue_depth exists for product checkout, but no series has pod=x",
        ),
        (
            replace(QUERY, product="chekout"),
            "no metric has service=chekout in this time range; products are: checkout",
        ),
    ],
)
async def test_silence_is_explained(open_metrics: Open, query: MetricQuery, note: str) -> None:
    server = PrometheusServer([series("queue_depth", [1.0] * 40), series("up", [1.0] * 40)])
    result = await (await open_metrics(server)).query_range(query)
    assert list(result.series) == []
    assert note in result.notes[-1]


@pytest.mark.parametrize("metric", ["", "up{", "rate(up[5m])", "a b", "up or vector(1)", "1up"])
async def test_metric_must_be_a_bare_name(open_metrics: Open, metric: str) -> None:
    server = PrometheusServer([])
    metrics = await open_metrics(server)
    with pytest.raises(InvalidArguments, match="bare name"):
        await metrics.query_range(replace(QUERY, metric=metric))
    assert server.forms == []


@pytest.mark.parametrize("label", ["", 'x="y",z', "a b", "a$1", "\ud800"])
async def test_label_must_be_a_name(open_metrics: Open, label: str) -> None:
    metrics = await open_metrics(PrometheusServer([]))
    with pytest.raises(InvalidArguments, match="label"):
        await metrics.query_range(replace(QUERY, labels={label: "v"}))


async def test_product_must_be_named(open_metrics: Open) -> None:
    metrics = await open_metrics(PrometheusServer([]))
    with pytest.raises(InvalidArguments, match="product"):
        await metrics.query_range(replace(QUERY, product=" "))


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (
            400,
            json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error"}),
            "parse error",
        ),
        (
            422,
            json.dumps({"status": "error", "errorType": "422", "error": "too many points"}),
            "too many points",
        ),
        (
            503,
            json.dumps({"status": "error", "errorType": "timeout", "error": "query timed out"}),
            "query timed out",
        ),
        (502, "<html>\n<h1>Bad Gateway</h1></html>", "<html> <h1>Bad Gateway</h1></html>"),
        (500, "", "no explanation"),
    ],
)
async def test_failure_keeps_its_status_and_words(
    open_metrics: Open, status: int, body: str, words: str
) -> None:
    metrics = await open_metrics(answering(body, status))
    with pytest.raises(UpstreamFailed) as caught:
        await metrics.query_range(QUERY)
    assert (caught.value.status, caught.value.message) == (status, words)


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        "{}",
        '{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}',
        '{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"x"]]}]}}',
    ],
)
async def test_answer_that_is_not_a_matrix_is_a_failure(open_metrics: Open, body: str) -> None:
    metrics = await open_metrics(answering(body))
    with pytest.raises(UpstreamFailed, match="matrix"):
        await metrics.query_range(QUERY)


async def test_tenant_is_sent(open_metrics: Open) -> None:
    server = PrometheusServer([series("queue_depth", [1.0] * 40)], tenant="shop")
    assert (await (await open_metrics(server, org_id="shop")).query_range(QUERY)).series
    with pytest.raises(UpstreamFailed, match="no org id"):
        await (await open_metrics(server)).query_range(QUERY)


async def test_prefix_of_the_base_url_is_kept(aiohttp_server: Serve) -> None:
    outer = web.Application()
    outer.add_subapp("/prometheus", PrometheusServer([series("queue_depth", [1.0] * 40)]).app())
    running = await aiohttp_server(outer)
    async with http_client(base_url=str(running.make_url("/prometheus"))) as client:
        result = await PrometheusMetrics(client, SetClock(NOW), "service").query_range(QUERY)
    assert len(result.series) == 1


async def test_unreachable_server_is_unavailable(unused_tcp_port: int) -> None:
    async with http_client(base_url=f"http://127.0.0.1:{unused_tcp_port}") as client:
        with pytest.raises(CapabilityUnavailable, match="Prometheus"):
            await PrometheusMetrics(client, SetClock(NOW), "service").query_range(QUERY)


def test_product_label_must_be_a_label() -> None:
    with pytest.raises(ValueError, match="product_label"):
        PrometheusMetrics(httpx.AsyncClient(), SetClock(NOW), product_label='a="b",c')


@given(
    range_s=st.integers(min_value=1, max_value=30 * 86_400),
    asked_s=st.none() | st.floats(min_value=0.001, max_value=100_000),
)
def test_step_never_exceeds_the_limit_of_points(range_s: int, asked_s: float | None) -> None:
    step_s, _note = step_for(Interval(NOW, NOW + timedelta(seconds=range_s)), asked_s, 15.0)
    assert step_s >= 15.0
    assert range_s / step_s <= MAX_STEPS


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("http_request_duration_seconds_p99", "seconds"),
        ("http_request_duration_seconds_bucket", "seconds"),
        ("process_resident_memory_bytes", "bytes"),
        ("node_network_receive_bytes_total", "bytes per second"),
        ("http_requests_total", "per second"),
        ("http_requests_per_second", "per second"),
        ("cpu_utilization_ratio", "ratio"),
        ("disk_used_percent", "percent"),
        ("queue_depth", None),
        ("seconds_left_guess", None),
    ],
)
def test_unit_of_a_name(metric: str, unit: str | None) -> None:
    assert unit_of(metric) == unit


POD = "checkout-7d9f8b6c5d-x2x4z"
AT_S = NOW.timestamp() - 600
ROW = {"metric": {"service": "checkout"}, "values": [[NOW.timestamp() - 60, "1"]]}
NATIVE = {
    "metric": {"job": "x"},
    "histograms": [[NOW.timestamp() - 60, {"count": "60", "sum": "33.4", "buckets": []}]],
}


def matrix(*rows: object, **more: object) -> str:
    data = {"resultType": "matrix", "result": list(rows)}
    return json.dumps({"status": "success", "data": data, **more})


class NamedServer:
    """A server whose series have the labels `names`; before version 3 it reads no quoted names."""

    def __init__(self, names: list[str], *, reads_quoted: bool = True) -> None:
        self.names = names
        self.reads_quoted = reads_quoted
        self.refused: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v1/labels", self._labels)
        app.router.add_get("/api/v1/metadata", self._labels)
        app.router.add_post("/api/v1/query", self._query)
        return app

    async def _labels(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": self.names})

    async def _query(self, request: web.Request) -> web.Response:
        query = str((await request.post())["query"])
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
        names_in_quotes = re.search(r'[{,]\s*""\s*=|by \([^)]*""', bare)
        if re.search(r"[\w]\.[\w]", bare) or (names_in_quotes and not self.reads_quoted):
            self.refused.append(query)
            body = {"status": "error", "errorType": "bad_data", "error": "parse error"}
            return web.json_response(body, status=400)
        rows = [
            {"metric": {"__name__": "up", name: value, "kortex_label": name}, "value": [1, "1"]}
            for name, value in (("k8s.pod.name", POD), ("job", "checkout"))
            if f'"kortex_label", "{name}"' in query and "last_over_time" in query
        ]
        return web.json_response({"status": "success", "data": {"result": rows}})


async def test_a_dotted_label_is_quoted_and_names_a_product(open_metrics: Open) -> None:
    server = NamedServer(["__name__", "k8s.pod.name", "instance"])
    metrics = await open_metrics(server.app(), product_label="")

    found = await metrics.discover(["checkout"], HALF_HOUR)

    assert server.refused == []
    assert [one.name for one in found.metrics] == ["up"]
    (place,) = found.metrics[0].places["checkout"]
    assert (place.label, place.pods) == ("k8s.pod.name", True)


async def test_a_server_without_quoted_names_is_asked_by_the_plain_ones(open_metrics: Open) -> None:
    server = NamedServer(["job", "k8s.pod.name"], reads_quoted=False)
    metrics = await open_metrics(server.app(), product_label="")

    found = await metrics.discover(["checkout"], HALF_HOUR)

    assert [place.label for place in found.metrics[0].places["checkout"]] == ["job"]
    assert any("k8s.pod.name" in note for note in found.notes)


async def test_an_unquotable_label_is_omitted_and_counted(open_metrics: Open) -> None:
    server = NamedServer(["job", 'a"b', "a$1", "x y", "\u2028"])
    metrics = await open_metrics(server.app(), product_label="")

    found = await metrics.discover(["checkout"], HALF_HOUR)

    assert server.refused == []
    assert found.notes == ("4 labels have names that no query can hold; not read",)


@pytest.mark.parametrize("metric", ["http.server.request.duration", "a-b/c", "größe.total"])
async def test_a_dotted_metric_is_asked_by_its_quoted_name(open_metrics: Open, metric: str) -> None:
    queries: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        queries.append(str((await request.post())["query"]))
        return web.Response(text=matrix(ROW))

    app = web.Application()
    app.router.add_post("/api/v1/query_range", answer)
    result = await (await open_metrics(app)).query_range(
        replace(QUERY, metric=metric, labels={"k8s.pod.name": "x"})
    )

    assert queries == [f'{{__name__="{metric}","k8s.pod.name"="x",service="checkout"}}']
    assert len(result.series) == 1


async def test_native_histograms_do_not_hide_the_other_series(open_metrics: Open) -> None:
    app = answering(matrix(ROW, NATIVE))
    result = await (await open_metrics(app)).promql("x", HALF_HOUR, 60.0)

    assert [one.labels for one in result.series] == [{"service": "checkout"}]
    assert any("1 series hold native histograms" in note for note in result.notes)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        "x",
        {"metric": None},
        {"metric": {"a": 1}, "values": 3},
        {"metric": {"a": "b"}, "values": [[-1e300, "1"]]},
        {"metric": {"a": "b"}, "values": [[1e300, "1"]]},
    ],
)
async def test_one_odd_row_is_counted_and_does_not_hide_the_rest(
    open_metrics: Open, odd: object
) -> None:
    result = await (await open_metrics(answering(matrix(ROW, odd)))).promql("x", HALF_HOUR, 60.0)

    assert len(result.series) == 1
    assert any("1 of 2 series could not be read" in note for note in result.notes)


@pytest.mark.parametrize(
    "odd", [None, 7, "x", [], [1.0], [AT_S, None], [AT_S, "x"], [None, "1"], [-1, "1"], [AT_S, {}]]
)
async def test_one_odd_sample_is_counted_and_does_not_hide_its_series(
    open_metrics: Open, odd: object
) -> None:
    row = {"metric": {"service": "web"}, "values": [[AT_S, "1"], odd, [AT_S + 60, "2"]]}
    result = await (await open_metrics(answering(matrix(row, ROW)))).promql("x", HALF_HOUR, 60.0)

    assert [len(one.points) for one in result.series] == [1, 2]
    assert "1 values of a series could not be read" in result.notes


@pytest.mark.parametrize(
    ("more", "unread"),
    [
        ({}, 0),
        ({"isPartial": False, "warnings": [], "infos": ["PromQL info: x"]}, 0),
        ({"warnings": ["PromQL warning: a mix of histograms and floats"]}, 0),
        ({"isPartial": True}, 1),  # of VictoriaMetrics
        ({"warnings": ["receive series from store-1: connection refused", "and store-2"]}, 2),
        ({"warnings": "store-1 is away"}, 0),
        ({"warnings": [None, {"a": 1}, "store-1 is away"], "infos": {}}, 3),
        ({"isPartial": "perhaps", "warnings": 7, "infos": None}, 0),
    ],
)
async def test_an_answer_without_some_stores_counts_what_it_lacks(
    open_metrics: Open, more: dict[str, object], unread: int
) -> None:
    body = json.dumps({"status": "success", "data": {"result": [ROW]}, **more})
    with counting_unread() as counted:
        result = await (await open_metrics(answering(body))).promql("x", HALF_HOUR, 60.0)

    assert len(result.series) == 1
    assert counted.count == unread


@pytest.mark.parametrize("data", ["null", '{"result": []}', '{"result": [{"metric": {}}]}'])
async def test_an_error_in_a_successful_answer_is_an_error(open_metrics: Open, data: str) -> None:
    body = f'{{"status": "error", "error": "too many samples", "data": {data}}}'
    with pytest.raises(UpstreamFailed, match="too many samples"):
        await (await open_metrics(answering(body))).promql("x", HALF_HOUR, 60.0)


@pytest.mark.parametrize(
    "body",
    [
        '{"status":"success","data":null}',
        '{"status":"success","data":{"resultType":"matrix","result":null}}',
        '{"status":"success","data":{"resultType":"matrix","result":[]},"warnings":null}',
    ],
)
async def test_null_is_an_empty_answer(open_metrics: Open, body: str) -> None:
    result = await (await open_metrics(answering(body))).promql("x", HALF_HOUR, 60.0)
    assert result.series == ()


async def test_a_quantile_of_a_native_histogram_is_computed_from_it(open_metrics: Open) -> None:
    queries: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        queries.append(str((await request.post())["query"]))
        return web.Response(text=matrix(*([ROW] if "histogram_quantile" in queries[-1] else [])))

    async def names(_request: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": ["request_duration_seconds"]})

    app = web.Application()
    app.router.add_post("/api/v1/query_range", answer)
    app.router.add_get("/api/v1/label/__name__/values", names)
    metrics = await open_metrics(app, scrape_interval_s=15.0)
    result = await metrics.query_range(replace(QUERY, metric="request_duration_seconds_p99"))

    rate = 'rate(request_duration_seconds{service="checkout"}[75s])'
    assert queries[-1] == f"histogram_quantile(0.99, sum ({rate}))"
    assert len(result.series) == 1
