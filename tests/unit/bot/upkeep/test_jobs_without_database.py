"""While the database is away its process says so once, and once when it is back."""

import asyncio
from functools import partial

from structlog.testing import capture_logs

from bot.ports.failures import StorageUnavailable
from bot.upkeep import jobs
from bot.upkeep.jobs import Job
from tests.unit.bot.upkeep.test_jobs import uncounted


async def test_a_database_outage_is_logged_in_two_lines_without_a_traceback() -> None:
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

    named = {name: Job(0.01, partial(of, name)) for name in outcomes}
    with capture_logs() as lines:
        async with jobs.running(named, uncounted), asyncio.timeout(5):
            await done.wait()

    assert lines == [
        {"event": "database.down", "log_level": "warning", "job": "tickets", "why": "refused"},
        {"event": "database.recovered", "log_level": "info", "away_s": 0, "missed": 5},
    ]
