"""Tools that look at many products at once work on every kind of backend, PromQL or none."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.cloudwatch_logs import CloudWatchLogs
from adapters.observe.cloudwatch_metrics import CloudWatchMetrics
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.datadog import Datadog
from adapters.observe.elasticsearch import Elasticsearch
from adapters.observe.field_logs import FieldLogs
from adapters.observe.instants import ns_text
from adapters.observe.metric_source import MetricSource
from adapters.observe.named_metrics import NamedMetrics
from adapters.observe.victorialogs import VictoriaLogs
from tests.fakes.aws import cloudwatch, cloudwatch_logs
from tests.fakes.capabilities import NOW, fake_capabilities, nanoseconds
from tests.fakes.cloudwatch_logs_server import CloudWatchLogsServer
from tests.fakes.cloudwatch_server import CloudWatchServer
from tests.fakes.datadog_server import DatadogServer
from tests.fakes.elasticsearch_server import ElasticsearchServer
from tests.fakes.prometheus_server import StoredSeries
from tests.fakes.set_clock import SetClock
from tests.fakes.tools import bench
from tests.fakes.victorialogs_server import VictoriaLogsServer
from tools.capabilities import Capabilities, Logs, Metrics
from tools.contract import AnyTool
from tools.core.compare_to_baseline import CompareToBaseline
from tools.core.error_patterns import ErrorPatterns
from tools.core.find_metrics import FindMetrics
from tools.core.sweep_metrics import SweepMetrics

PRODUCTS = ("checkout", "payments")
# Product, minutes ago, level, text: checkout's pool is exhausted since ten minutes.
LINES = [
    *(("checkout", n, "ERROR", f"pool of payments exhausted after {n} ms") for n in range(1, 11)),
    *(("checkout", n, "INFO", f"served {n}") for n in range(1, 60)),
    *(("payments", n, "INFO", f"paid {n}") for n in range(1, 60)),
]


def series() -> Sequence[StoredSeries]:
    """Requests of a day; for ten minutes checkout's take ten times as long."""
    minutes = [NOW - timedelta(minutes=number) for number in range(26 * 60, 0, -1)]
    late = NOW - timedelta(minutes=10)
    return [
        StoredSeries(
            name,
            {"service": product},
            [
                (
                    at.timestamp(),
                    usual * (10 if at >= late and product == "checkout" else 1 + n % 5 / 50),
                )
                for n, at in enumerate(minutes)
            ],
        )
        for product in PRODUCTS
        for name, usual in (("http.request.duration", 0.1), ("http.requests", 600.0))
    ]


@asynccontextmanager
async def client_of(server: TestServer) -> AsyncIterator[httpx.AsyncClient]:
    async with server, http_client(base_url=str(server.make_url("/"))) as client:
        yield client


@asynccontextmanager
async def logs_of(kind: str) -> AsyncIterator[Logs]:
    rows = [
        (p, nanoseconds(NOW - timedelta(minutes=n)), level, text) for p, n, level, text in LINES
    ]
    apps: dict[str, Any] = {
        "victorialogs": lambda: VictoriaLogsServer(
            [
                {"_time": ns_text(ts), "_msg": text, "app": p, "level": level}
                for p, ts, level, text in rows
            ]
        ),
        "elasticsearch": lambda: ElasticsearchServer(
            [
                {"@timestamp": ns_text(ts), "message": text, "app": p, "level": level}
                for p, ts, level, text in rows
            ]
        ),
        "cloudwatch": lambda: CloudWatchLogsServer(
            {
                f"/ecs/{product}": [
                    {"@timestamp": ns_text(ts), "@message": f"{level} {text}"}
                    for p, ts, level, text in rows
                    if p == product
                ]
                for product in PRODUCTS
            }
        ),
    }
    makes: dict[str, Callable[[Any], FieldLogs]] = {
        "victorialogs": lambda c: FieldLogs(VictoriaLogs(c), UnsealedCodec()),
        "elasticsearch": lambda c: FieldLogs(Elasticsearch(c, "logs-*"), UnsealedCodec()),
        "cloudwatch": lambda c: FieldLogs(
            CloudWatchLogs(cloudwatch_logs(c), polls_s=(0.0,)), UnsealedCodec(), "@log"
        ),
    }
    async with client_of(TestServer(apps[kind]().app())) as client:
        yield makes[kind](client)


@asynccontextmanager
async def metrics_of(kind: str) -> AsyncIterator[Metrics]:
    apps: dict[str, Any] = {"datadog": DatadogServer, "cloudwatch": CloudWatchServer}
    sources: dict[str, Callable[[httpx.AsyncClient], MetricSource]] = {
        "datadog": Datadog,
        "cloudwatch": lambda client: CloudWatchMetrics(cloudwatch(client)),
    }
    async with client_of(TestServer(apps[kind](series()).app())) as client:
        yield NamedMetrics(sources[kind](client), SetClock(NOW))


async def answered(tool: AnyTool, caps: Capabilities, **arguments: object) -> Any:
    given = {"time_range": "last 10m", **arguments}
    b = bench([tool], caps=caps)
    outcome = await b.run(orjson.dumps(given).decode(), tool.contract.id, products=PRODUCTS)
    assert outcome.record.ok, outcome.content
    return orjson.loads(outcome.content)


@pytest.mark.parametrize("kind", ["victorialogs", "elasticsearch", "cloudwatch"])
async def test_new_pattern_of_errors_is_found(kind: str) -> None:
    async with logs_of(kind) as logs:
        body = await answered(ErrorPatterns(), fake_capabilities(logs=logs))
    first = body["changes"][0]
    assert (first["product"], first["change"], first["before"]) == ("checkout", "new", 0)
    assert "pool of payments exhausted" in first["example"]
    assert body["without"] == []


@pytest.mark.parametrize("kind", ["datadog", "cloudwatch"])
async def test_product_that_changed_is_found_among_many(kind: str) -> None:
    async with metrics_of(kind) as metrics:
        caps = fake_capabilities(metrics=metrics)
        swept = await answered(SweepMetrics(), caps)
        found = await answered(FindMetrics(), caps, product="checkout")
        compared = await answered(
            CompareToBaseline(), caps, product="checkout", metric_name="http.request.duration"
        )
    shifted = [(one["product"], one["signal"], one["direction"]) for one in swept["shifts"]]
    assert shifted[0] == ("checkout", "http.request.duration", "up")
    assert {product for product, _signal, _direction in shifted} == {"checkout"}
    assert {one["role"] for one in found["found"]} == {"traffic", "latency"}
    assert compared["anomalous"]
    assert (compared["direction"], compared["coverage"]) == ("up", 1.0)
