"""Every source of logs keeps one contract: the same lines in, the same pages out."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.cloudwatch_logs import CloudWatchLogs
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.elasticsearch import Elasticsearch
from adapters.observe.field_logs import FieldLogs
from adapters.observe.instants import from_ns, ns_text
from adapters.observe.loki import LokiLogs
from adapters.observe.victorialogs import VictoriaLogs
from adapters.recorded.player.logs import RecordedLogs
from adapters.recorded.simulator.backends import SimulatedLines
from tests.fakes.aws import cloudwatch_logs
from tests.fakes.cloudwatch_logs_server import CloudWatchLogsServer
from tests.fakes.elasticsearch_server import ElasticsearchServer
from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.set_clock import SetClock
from tests.fakes.victorialogs_server import VictoriaLogsServer
from tests.fixtures_logs_contract import PRODUCT, LogsContract, contract_lines, contract_logs
from tools.capabilities import LogLine, Logs


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 11, 21, 14, 3, tzinfo=UTC)


def stored(product: str, line: LogLine) -> Stored:
    metadata = {"detected_level": line.level, "trace_id": line.trace_id}
    return Stored(line.ts_ns, line.message, {"service_name": product, "host": line.host}, metadata)


def event(line: LogLine) -> dict[str, str]:
    at = f"{from_ns(line.ts_ns):%Y-%m-%d %H:%M:%S}.{line.ts_ns // 10**6 % 1000:03d}"
    return {
        "@timestamp": at, "@message": f"{line.message}\n", "@logStream": line.host,
        "trace_id": line.trace_id,
    }  # fmt: skip


class TestRecordedLogs(LogsContract):
    @pytest.fixture
    def logs(self, now: datetime) -> Logs:
        return RecordedLogs(SimulatedLines(contract_logs(now)), SetClock(now), UnsealedCodec())


class TestVictoriaLogs(LogsContract):
    @pytest.fixture
    async def logs(
        self, now: datetime, aiohttp_server: Callable[[web.Application], Awaitable[TestServer]]
    ) -> AsyncIterator[Logs]:
        rows = [
            {
                "_time": ns_text(line.ts_ns), "_msg": line.message, "service.name": product,
                "level": line.level, "host.name": line.host, "trace_id": line.trace_id,
            }
            for product in ("inventory", "payments")
            for line in contract_lines(now, product)
        ]  # fmt: skip
        server = await aiohttp_server(VictoriaLogsServer(rows).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield FieldLogs(VictoriaLogs(client), UnsealedCodec())


class TestElasticsearch(LogsContract):
    @pytest.fixture
    async def logs(
        self, now: datetime, aiohttp_server: Callable[[web.Application], Awaitable[TestServer]]
    ) -> AsyncIterator[Logs]:
        documents = [
            {
                "@timestamp": ns_text(line.ts_ns), "message": line.message,
                "service.name": product, "log.level": line.level.upper(),
                "host.name": line.host, "trace.id": line.trace_id,
            }
            for product in ("inventory", "payments")
            for line in contract_lines(now, product)
        ]  # fmt: skip
        server = await aiohttp_server(ElasticsearchServer(documents).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield FieldLogs(Elasticsearch(client, "logs-*"), UnsealedCodec())


class TestCloudWatchLogs(LogsContract):
    """Which keeps milliseconds, and has a level in the line alone."""

    def lines(self, now: datetime, product: str = PRODUCT) -> list[LogLine]:
        return [
            replace(
                line,
                ts_ns=line.ts_ns // 10**6 * 10**6,
                message=f"{line.level.upper()} {line.message}",
            )
            for line in contract_lines(now, product)
        ]

    @pytest.fixture
    async def logs(
        self, now: datetime, aiohttp_server: Callable[[web.Application], Awaitable[TestServer]]
    ) -> AsyncIterator[Logs]:
        groups = {
            f"/ecs/prod-{product}": [event(line) for line in self.lines(now, product)]
            for product in ("inventory", "payments")
        }
        server = await aiohttp_server(CloudWatchLogsServer(groups).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            source = CloudWatchLogs(cloudwatch_logs(client), ["/ecs/prod-"], polls_s=(0.0,))
            yield FieldLogs(source, UnsealedCodec(), source.product_field)


class TestLoki(LogsContract):
    @pytest.fixture
    async def logs(
        self, now: datetime, aiohttp_server: Callable[[web.Application], Awaitable[TestServer]]
    ) -> AsyncIterator[Logs]:
        entries = [
            stored(product, line)
            for product in ("inventory", "payments")
            for line in contract_lines(now, product)
        ]
        server = await aiohttp_server(LokiServer(entries).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield LokiLogs(client, UnsealedCodec())
