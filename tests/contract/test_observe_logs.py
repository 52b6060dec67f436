"""Recorded logs and Loki keep the same contract: the same lines in, the same pages out."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http import http_client
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.loki import LokiLogs
from adapters.observe.recorded import RecordedLogs
from adapters.observe.simulator.dataset import Dataset
from adapters.observe.simulator.incidents import INCIDENTS
from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.set_clock import SetClock
from tools.capabilities import Interval, LogLine, LogQuery, Logs
from tools.errors import InvalidArguments

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
RANGE = Interval(NOW - timedelta(minutes=20), NOW)
QUERY = LogQuery("inventory", RANGE)


def dataset() -> Dataset:
    return Dataset(INCIDENTS["saturated-dependency"](NOW), NOW, 11)


def lines_of(product: str) -> list[LogLine]:
    data = dataset()
    minutes = data.minutes(RANGE.start, RANGE.end)
    return [line for minute in reversed(minutes) for line in data.lines(product, minute)]


def stored(product: str, line: LogLine) -> Stored:
    metadata = {"detected_level": line.level, "trace_id": line.trace_id}
    return Stored(line.ts_ns, line.message, {"service_name": product, "host": line.host}, metadata)


class LogsContract:
    """Run against every implementation."""

    async def pages(self, logs: Logs, query: LogQuery) -> list[LogLine]:
        page = await logs.query(query)
        found = list(page.lines)
        while page.next_cursor:
            page = await logs.query(replace(query, cursor=page.next_cursor))
            found.extend(page.lines)
        return found

    @pytest.mark.parametrize("size", [3, 17, 100])
    async def test_pages_deliver_all_lines_once_newest_first(self, logs: Logs, size: int) -> None:
        found = await self.pages(logs, replace(QUERY, limit=size))
        expected = set(lines_of("inventory"))
        assert set(found) == expected
        assert len(found) == len(expected)
        assert [line.ts_ns for line in found] == sorted(
            (line.ts_ns for line in found), reverse=True
        )

    async def test_page_is_at_most_100_lines(self, logs: Logs) -> None:
        page = await logs.query(replace(QUERY, limit=1000))
        assert len(page.lines) == 100
        assert page.next_cursor

    @pytest.mark.parametrize("text", ["falling back", '|= "falling back"', "|~ `falling .ack`"])
    async def test_filter_selects(self, logs: Logs, text: str) -> None:
        found = await self.pages(logs, replace(QUERY, filter=text))
        assert set(found) == {
            line for line in lines_of("inventory") if "falling back" in line.message
        }
        assert found

    async def test_minimum_level_selects(self, logs: Logs) -> None:
        found = await self.pages(logs, replace(QUERY, min_level="warn"))
        assert set(found) == {
            line for line in lines_of("inventory") if line.level in {"warn", "error"}
        }

    async def test_unknown_product_is_refused(self, logs: Logs) -> None:
        with pytest.raises(InvalidArguments, match="inventory"):
            await logs.query(replace(QUERY, product="inventroy"))

    async def test_cursor_of_another_query_is_refused(self, logs: Logs) -> None:
        page = await logs.query(replace(QUERY, limit=5))
        with pytest.raises(InvalidArguments, match="cursor"):
            await logs.query(replace(QUERY, min_level="error", cursor=page.next_cursor))

    async def test_empty_range_is_refused(self, logs: Logs) -> None:
        with pytest.raises(InvalidArguments, match="empty"):
            await logs.query(replace(QUERY, interval=Interval(NOW, NOW)))


class TestRecordedLogs(LogsContract):
    @pytest.fixture
    def logs(self) -> Logs:
        return RecordedLogs(dataset(), SetClock(NOW), UnsealedCodec())


class TestLoki(LogsContract):
    @pytest.fixture
    async def logs(
        self, aiohttp_server: Callable[[web.Application], Awaitable[TestServer]]
    ) -> AsyncIterator[Logs]:
        entries = [
            stored(product, line)
            for product in ("inventory", "payments")
            for line in lines_of(product)
        ]
        server = await aiohttp_server(LokiServer(entries).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield LokiLogs(client, UnsealedCodec())
