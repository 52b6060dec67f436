"""While the database is away its process says so once, and once when it is back."""

import asyncio
from collections.abc import Collection, Iterator
from functools import partial

import pytest
from blockbuster import BlockBuster
from structlog.testing import capture_logs

from bot.ports.failures import StorageUnavailable
from bot.upkeep import jobs
from tests.unit.bot.upkeep.test_jobs import NONE


@pytest.fixture(autouse=True)
def _starting_may_block(_nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()  # the scheduler looks the time zone up


async def test_a_database_that_is_away_is_two_lines_whatever_misses_it_and_no_traceback() -> None:
    outcomes: dict[str, list[Exception | None]] = {
        "tickets": [StorageUnavailable("refused")] * 3 + [None, None],
        "cards": [None, StorageUnavailable("refused"), StorageUnavailable("refused"), None],
        "files": [None],
    }
    done = asyncio.Event()

    async def of(name: str) -> None:
        left = outcomes[name]
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if all(len(each) == 1 for each in outcomes.values()):
            asyncio.get_running_loop().call_later(0.03, done.set)
        if outcome is not None:
            raise outcome

    named = {name: (0.01, partial(of, name)) for name in outcomes}
    with capture_logs() as lines:
        async with jobs.running(named, NONE), asyncio.timeout(5):
            await done.wait()

    assert lines == [
        {"event": "storage.away", "log_level": "warning", "job": "tickets", "why": "refused"},
        {"event": "storage.back", "log_level": "info", "away_s": 0, "missed": 5},
    ]


async def test_it_is_back_when_a_look_tells_that_there_is_nothing_to_do() -> None:
    refused = StorageUnavailable("refused")
    looks: Iterator[Collection[str] | Exception] = iter([("cards",), refused, ()])
    runs: Iterator[Exception | None] = iter([None, refused])
    done = asyncio.Event()

    async def look() -> Collection[str]:
        if (found := next(looks, None)) is None:
            done.set()
        if isinstance(found, Exception):
            raise found
        return found or ()

    async def cards() -> None:
        if (outcome := next(runs)) is not None:
            raise outcome

    with capture_logs() as lines:
        async with (
            jobs.running({}, jobs.Prompted(0.01, look, {"cards": cards})),
            asyncio.timeout(5),
        ):
            await done.wait()

    assert lines == [
        {"event": "storage.away", "log_level": "warning", "job": "due", "why": "refused"},
        {"event": "storage.back", "log_level": "info", "away_s": 0, "missed": 2},
    ]
