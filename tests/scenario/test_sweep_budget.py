"""Fifty products are swept in a few requests and a few seconds, over the real adapters."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.kubernetes.reader import KubernetesReader
from adapters.llm.first_look.digest import MOST_TOKENS, as_read
from adapters.llm.messages import Meta
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.jaeger import JaegerTraces
from adapters.observe.loki import LokiLogs
from adapters.observe.prometheus import PrometheusMetrics
from adapters.observe.tempo import TempoTraces
from tests.fakes.capabilities import NOW, fake_capabilities, nanoseconds
from tests.fakes.jaeger_server import JaegerServer
from tests.fakes.kubernetes_server import TOKEN, KubernetesServer
from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.set_clock import SetClock
from tests.fakes.tempo_server import TempoServer
from tests.fakes.tools import bench
from tests.fixtures_first_look import asked, look_tokens, looked
from tests.pace import spending
from tools.capabilities import Capabilities, Logs, Metrics, Span, Trace, Traces
from tools.core.cluster_reading import ALWAYS, MOST_LOG_REQUESTS
from tools.core.error_patterns import ErrorPatterns
from tools.core.sweep_cluster import MOST_ROWS, SweepCluster
from tools.core.sweep_metrics import SweepMetrics
from tools.core.sweep_traces import SweepTraces

PRODUCTS = tuple(f"shop-{number:02}" for number in range(50))
MOST_REQUESTS = (
    37  # of all backends: 11 kinds of objects, last lines of crashes, errors and metrics of a day
)
MOST_PIECES = 800  # of CPU, the fakes too: the wall would measure who else is on the machine
METRICS = tuple(f"{name}_{n}" for name in ("http_server_errors", "app_latency_seconds", "app_queue_size") for n in range(5))  # fmt: skip
_TERM = re.compile(r'"kortex_term", "(\d+)"')

Serve = Callable[[web.Application], Awaitable[TestServer]]


class Counted:
    """Every request to any of the backends."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def app(self, app: web.Application) -> web.Application:
        """The same, counted."""

        @web.middleware
        async def counting(request: web.Request, handler: object) -> web.StreamResponse:
            self.paths.append(request.path)
            answer: web.StreamResponse = await handler(request)  # type: ignore[operator]
            return answer

        app.middlewares.append(counting)
        return app


def prometheus() -> web.Application:
    """Knows METRICS of every product by `service`, sampled each minute."""

    def answered(kind: str, rows: list[object]) -> web.Response:
        data = {"resultType": kind, "result": rows}
        return web.Response(body=orjson.dumps({"status": "success", "data": data}))

    async def labels(_request: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": ["__name__", "service"]})

    async def metadata(_request: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": {}})

    async def instant(request: web.Request) -> web.Response:
        asked = (await request.post())["query"]
        rows: list[object] = [
            {"metric": {"__name__": metric, "service": product, "kortex_label": "service"},
             "value": [0, "1"]}
            for metric in METRICS
            for product in PRODUCTS
        ]  # fmt: skip
        return answered("vector", rows if "kortex_label" in str(asked) else [])

    async def ranged(request: web.Request) -> web.Response:
        form = await request.post()
        terms = set(_TERM.findall(str(form["query"])))
        start, end = float(str(form["start"])), float(str(form["end"]))
        times = [start + 60 * n for n in range(int((end - start) // 60) + 1)]
        rows: list[object] = [
            {"metric": {"kortex_term": term, "service": product, "kortex_product": product,
                        "__name__": metric},
             "values": [(at, "1.5") for at in times]}
            for term in terms
            for product in PRODUCTS
            for metric in METRICS[:3]
        ]  # fmt: skip
        return answered("matrix", rows)

    app = web.Application()
    app.router.add_get("/api/v1/labels", labels)
    app.router.add_get("/api/v1/metadata", metadata)
    app.router.add_post("/api/v1/query", instant)
    app.router.add_post("/api/v1/query_range", ranged)
    return app


def lines(loud: int) -> list[Stored]:
    """Every product writes, five of them so much, all of them errors now and then."""
    at = nanoseconds(NOW)
    return [
        Stored(
            at - (n * 5400 // number) * 10**9 - index,
            f"order {n} {'refused' if n % 9 == 0 else 'served'}",
            {"service_name": product, "pod": f"{product}-1", "namespace": "shop", "app": product},
            {"detected_level": "error" if n % 9 == 0 else "info"},
        )
        for index, product in enumerate(PRODUCTS)
        for number in (loud if index < 5 else 30,)
        for n in range(number)
    ]


def traces() -> list[Trace]:
    """Two a minute through a few of them."""
    found = []
    for n in range(180):
        trace_id, begun = f"{n + 1:032x}", nanoseconds(NOW - timedelta(seconds=30 * n + 5)) // 1000
        spans = [
            Span(f"{n + 1:08x}{depth:08x}", f"{n + 1:08x}{depth - 1:08x}" if depth else "",
                 PRODUCTS[depth], "GET", begun, 50_000 - 10_000 * depth, "ok")
            for depth in range(4)
        ]  # fmt: skip
        found.append(Trace(trace_id, tuple(spans)))
    return found


def crashing() -> KubernetesServer:
    names = {f"{product}-7d9f8b6c5-x2x4z" for product in PRODUCTS}
    status = {"name": "app", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    return KubernetesServer({
        f"/api/v1/namespaces/shop/pods/{name}": {
            "metadata": {"name": name, "namespace": "shop"},
            "status": {"phase": "Running", "containerStatuses": [status]},
        }
        for name in names
    })  # fmt: skip


@pytest.fixture
async def counted() -> Counted:
    return Counted()


@pytest.fixture(params=["tempo", "tempo, more lines than are read", "jaeger v1", "jaeger v3"])
async def backends(
    request: pytest.FixtureRequest, counted: Counted, aiohttp_server: Serve
) -> AsyncIterator[Capabilities]:
    tracing, _, many = str(request.param).partition(", ")
    servers: dict[str, web.Application] = {
        "tempo": TempoServer(traces()).app(),
        "jaeger v1": JaegerServer(traces()).app(),
        "jaeger v3": JaegerServer(traces()).app(),
    }
    async with AsyncExitStack() as stack:

        async def client(app: web.Application) -> object:
            running = await aiohttp_server(counted.app(app))
            return await stack.enter_async_context(http_client(base_url=str(running.make_url("/"))))

        metrics: Metrics = PrometheusMetrics(await client(prometheus()), SetClock(NOW))  # type: ignore[arg-type]
        loki = await client(LokiServer(lines(9_000 if many else 900)).app())
        logs: Logs = LokiLogs(loki, UnsealedCodec())  # type: ignore[arg-type]
        by = await client(servers[tracing])
        of: Traces = (
            TempoTraces(by)  # type: ignore[arg-type]
            if tracing == "tempo"
            else JaegerTraces(by, "v3" if tracing.endswith("v3") else "v1")  # type: ignore[arg-type]
        )
        running = await aiohttp_server(counted.app(crashing().app()))
        api = KubernetesApi(Access(str(running.make_url("/")), None, lambda: TOKEN, "shop"))
        stack.push_async_callback(api.aclose)
        yield fake_capabilities(
            metrics=metrics, logs=logs, traces=of, kubernetes=KubernetesReader(api)
        )


async def test_fifty_products_are_swept_within_the_budget(
    backends: Capabilities, counted: Counted
) -> None:
    run = bench([SweepMetrics(), ErrorPatterns(), SweepTraces(), SweepCluster()], caps=backends)
    ids = (
        "core__sweep_metrics",
        "core__error_patterns",
        "core__sweep_traces",
        "core__sweep_cluster",
    )
    with spending() as spent:
        outcomes = await asyncio.gather(
            *(run.run("{}", tool, now=NOW, products=PRODUCTS) for tool in ids)
        )
        surer = await run.run('{"against_day": true}', ids[1], now=NOW, products=PRODUCTS)

    assert len(counted.paths) <= MOST_REQUESTS
    assert spent.pieces <= MOST_PIECES
    metrics, logs, traces, cluster, day = (orjson.loads(one.content) for one in (*outcomes, surer))
    assert len(metrics["within"]) == len(logs["lines"]) == len(PRODUCTS)
    assert len(cluster["ill"]) == MOST_ROWS
    assert cluster["requests"] == 2 + len(ALWAYS) + MOST_LOG_REQUESTS
    assert logs["partly"] == day["partly"] == []
    assert day["requests"] == 2 + 1 + 1  # its look, its counts and its errors; not the lines again
    assert traces["calls"] == ["shop-00 > shop-01", "shop-01 > shop-02", "shop-02 > shop-03"]
    told = dict(zip(ids, (metrics, logs, traces, cluster), strict=True))
    look = looked(told, asked("why is it slow?", meta=Meta(products=PRODUCTS, now=NOW)))
    assert look_tokens(as_read(look)) <= MOST_TOKENS
