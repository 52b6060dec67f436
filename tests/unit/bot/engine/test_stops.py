"""A stop is noticed at any time, and nothing is polled without one."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest

from bot.domain.ids import TurnId, UserId
from bot.engine.stops import StopSignals
from bot.ports.failures import StorageUnavailable
from bot.store.tickets import Tickets

TURN, OTHER, BY = TurnId("turn:1"), TurnId("turn:2"), UserId("U1")


class Rows:
    """The tickets' part of it, in memory."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}
        self.looks = 0
        self.fails = False
        self.meanwhile: list[Any] = []

    async def request_stop(self, turn: str, by: str) -> bool:
        self.asked.setdefault(turn, by)
        if self.fails:
            raise StorageUnavailable("the answer was lost")
        return True

    async def stops_for(self, _owner: str) -> Mapping[str, str]:
        self.looks += 1
        if self.fails:
            raise StorageUnavailable("gone")
        found = dict(self.asked)
        while self.meanwhile:
            await self.meanwhile.pop()
        return found


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    monkeypatch.setattr("bot.engine.stops.POLL_S", 0.001)
    return Rows()


@asynccontextmanager
async def watched(rows: Rows, *, alone: bool) -> AsyncIterator[StopSignals]:
    stops = StopSignals(cast("Tickets", rows), "local", alone=alone)
    watching = asyncio.create_task(stops.watch())
    try:
        yield stops
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def looked(rows: Rows, times: int) -> int:
    """How often it was looked within so many waits for a look, and some."""
    before = rows.looks
    await asyncio.sleep(0.001 * times * 5)
    return rows.looks - before


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds, however busy the machine is. Raises TimeoutError."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is watched has no event
            await asyncio.sleep(0.001)


async def test_a_single_replica_looks_once_and_then_only_during_a_stop(rows: Rows) -> None:
    async with watched(rows, alone=True) as stops:
        with stops.of(OTHER):
            await looked(rows, 4)
            assert rows.looks == 1
            assert await looked(rows, 4) == 0
            assert await stops.request(TURN, BY)
            seen = rows.looks
            await until(lambda: rows.looks > seen + 1)
            with stops.of(TURN) as signal:  # which came later
                await looked(rows, 4)
                assert (signal.requested, signal.by) == (True, BY)
            with stops.of(TURN) as again:
                await looked(rows, 4)
                assert again.requested
            rows.asked.clear()
            await looked(rows, 4)
            assert await looked(rows, 4) == 0


async def test_a_stop_requested_from_the_previous_process_is_found(rows: Rows) -> None:
    rows.asked[TURN] = BY
    async with watched(rows, alone=True) as stops:
        with stops.of(OTHER):
            await looked(rows, 4)
        with stops.of(TURN) as signal:
            await until(lambda: signal.requested)


async def test_a_stop_requested_during_a_lookup_or_a_failure_is_found(rows: Rows) -> None:
    async with watched(rows, alone=True) as stops:
        rows.meanwhile.append(stops.request(TURN, BY))
        with stops.of(OTHER):
            await looked(rows, 4)
        with stops.of(TURN) as signal:
            await until(lambda: signal.requested)
        rows.asked.clear()
        await looked(rows, 4)
        rows.fails = True
        with pytest.raises(StorageUnavailable):
            await stops.request(TURN, BY)
        with stops.of(TURN) as signal:
            await looked(rows, 4)
            rows.fails = False
            await until(lambda: signal.requested)


async def test_one_of_several_replicas_keeps_looking(rows: Rows) -> None:
    async with watched(rows, alone=False) as stops:
        with stops.of(TURN) as signal:
            seen = rows.looks
            await until(lambda: rows.looks > seen + 1)
            rows.asked[TURN] = BY
            await until(lambda: signal.requested)
