"""What every source of log lines promises, and the lines it is asked for."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.scenario import INCIDENTS
from tools.capabilities import Interval, LogLine, LogQuery, Logs, LogSweepQuery
from tools.errors import InvalidArguments

PRODUCT = "inventory"


def contract_logs(now: datetime) -> Dataset:
    """An incident in which inventory falls back to what it knows."""
    return Dataset(INCIDENTS["saturated-dependency"](now), now, 11)


def contract_range(now: datetime) -> Interval:
    """Its last twenty minutes."""
    return Interval(now - timedelta(minutes=20), now)


def contract_lines(now: datetime, product: str = PRODUCT) -> list[LogLine]:
    """A product's lines in that range, newest first."""
    data, when = contract_logs(now), contract_range(now)
    minutes = data.minutes(when.start, when.end)
    return [line for minute in reversed(minutes) for line in data.lines(product, minute)]


class LogsContract:
    """Run against every implementation. `logs` holds `lines(now)`, and those of payments."""

    def lines(self, now: datetime, product: str = PRODUCT) -> list[LogLine]:
        """As the backend gives them back; one may keep less of a line than was pushed."""
        return contract_lines(now, product)

    @pytest.fixture
    def query(self, now: datetime) -> LogQuery:
        return LogQuery(PRODUCT, contract_range(now))

    @pytest.fixture
    def known(self, now: datetime) -> list[LogLine]:
        return self.lines(now)

    async def pages(self, logs: Logs, query: LogQuery) -> list[LogLine]:
        page = await logs.query(query)
        found = list(page.lines)
        while page.next_cursor:
            page = await logs.query(replace(query, cursor=page.next_cursor))
            found.extend(page.lines)
        return found

    @pytest.mark.parametrize("size", [3, 17, 100])
    async def test_pages_return_all_lines_once_newest_first(
        self, logs: Logs, size: int, query: LogQuery, known: list[LogLine]
    ) -> None:
        found = await self.pages(logs, replace(query, limit=size))
        expected = set(known)
        assert set(found) == expected
        assert len(found) == len(expected)
        assert [line.ts_ns for line in found] == sorted(
            (line.ts_ns for line in found), reverse=True
        )

    async def test_page_is_at_most_100_lines(self, logs: Logs, query: LogQuery) -> None:
        page = await logs.query(replace(query, limit=1000))
        assert len(page.lines) == 100
        assert page.next_cursor

    @pytest.mark.parametrize("text", ["falling back", '|= "falling back"', "|~ `falling .ack`"])
    async def test_filter_selects_lines(
        self, logs: Logs, text: str, query: LogQuery, known: list[LogLine]
    ) -> None:
        found = await self.pages(logs, replace(query, filter=text))
        assert set(found) == {line for line in known if "falling back" in line.message}
        assert found

    async def test_minimum_level_selects_lines(
        self, logs: Logs, query: LogQuery, known: list[LogLine]
    ) -> None:
        found = await self.pages(logs, replace(query, min_level="warn"))
        assert set(found) == {line for line in known if line.level in {"warn", "error"}}

    async def test_unknown_product_is_refused(self, logs: Logs, query: LogQuery) -> None:
        with pytest.raises(InvalidArguments, match="inventory"):
            await logs.query(replace(query, product="inventroy"))

    async def test_cursor_of_another_query_is_refused(self, logs: Logs, query: LogQuery) -> None:
        page = await logs.query(replace(query, limit=5))
        with pytest.raises(InvalidArguments, match="cursor"):
            await logs.query(replace(query, min_level="error", cursor=page.next_cursor))

    async def test_products_with_lines_are_listed(self, logs: Logs, query: LogQuery) -> None:
        found = await logs.discover([PRODUCT, "nowhere"], query.interval)
        assert (list(found.without), list(found.labels.values())) == (["nowhere"], [1])

    async def test_no_name_means_all_products(self, logs: Logs, query: LogQuery) -> None:
        found = await logs.discover([], query.interval)
        assert {PRODUCT, "payments"} <= set(found.products)

    async def test_sweep_reads_many_products_at_once(
        self, logs: Logs, query: LogQuery, known: list[LogLine], now: datetime
    ) -> None:
        wanted = LogSweepQuery([PRODUCT, "payments", "nowhere"], query.interval, min_level="warn")
        swept = await logs.sweep(wanted)
        (counts,) = await logs.count([wanted])
        assert counts == swept.counts == (await logs.sweep(replace(wanted, counts=counts))).counts
        others = self.lines(now, "payments")
        assert {product: set(lines) for product, lines in swept.lines.items()} == {
            PRODUCT: {line for line in known if line.level in {"warn", "error"}},
            "payments": {line for line in others if line.level in {"warn", "error"}},
        }
        assert dict(swept.counts) == {product: len(lines) for product, lines in swept.lines.items()}

    async def test_empty_range_is_refused(self, logs: Logs, query: LogQuery, now: datetime) -> None:
        with pytest.raises(InvalidArguments, match="empty"):
            await logs.query(replace(query, interval=Interval(now, now)))
