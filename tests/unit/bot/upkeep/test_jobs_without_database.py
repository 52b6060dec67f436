"""While the database is away a job says so once, and once when it goes on."""

import asyncio

import pytest
from blockbuster import BlockBuster
from structlog.testing import capture_logs

from bot.ports.failures import StorageUnavailable
from bot.upkeep import jobs


@pytest.fixture(autouse=True)
def _starting_may_block(_nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()  # the scheduler looks the time zone up


async def test_a_job_without_its_database_is_two_lines_and_no_traceback() -> None:
    outcomes: list[Exception | None] = [StorageUnavailable("refused")] * 3 + [None, None]
    done = asyncio.Event()

    async def job() -> None:
        outcome = outcomes.pop(0)
        if not outcomes:
            done.set()
        if outcome is not None:
            raise outcome

    with capture_logs() as lines:
        async with jobs.running({"tickets": (0.01, job)}), asyncio.timeout(5):
            await done.wait()

    assert lines == [
        {"event": "job.storage_unavailable", "log_level": "warning", "job": "tickets", "why": "refused"},
        {"event": "job.goes_on", "log_level": "info", "job": "tickets", "missed": 3},
    ]  # fmt: skip
