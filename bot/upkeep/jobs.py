"""Recurring jobs of a replica, run by APScheduler.

Each job is an idempotent query: rows of the database decide the due work, so every replica may run
it at the same time. The scheduler keeps no state of its own.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from bot.ports.failures import StorageUnavailable

log = structlog.get_logger(__name__)

DEADLINE_S: Final = 300.0
DRAIN_S: Final = 2.0
CLOCK_CHECK_S: Final = 30.0
CLOCK_STEP: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Job:
    """A recurring job. A run that lasts longer than `deadline_s` is cancelled.

    Without `first_s` the job also runs once at the start, which waits for it; with it, the first
    run is that many seconds later.
    """

    every_s: float
    run: Callable[[], Awaitable[object]]
    deadline_s: float = DEADLINE_S
    first_s: float | None = None


@asynccontextmanager
async def running(
    jobs: Mapping[str, Job],
    on_failure: Callable[[str], None],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[None]:
    """Run each job at its interval until the context ends, then drain for `DRAIN_S`.

    `on_failure` gets the name of a job that raised or met its deadline; the job runs again.
    """
    runs = _Runs(on_failure)
    for name, job in jobs.items():
        if job.first_s is None:
            await runs.run(name, job)
    # It would log each run that is skipped because the one before still runs.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = AsyncIOScheduler(timezone=UTC)
    for name, job in jobs.items():
        scheduler.add_job(
            partial(runs.run_apart, name, job),
            IntervalTrigger(seconds=job.every_s, timezone=UTC),
            name=name,
            next_run_time=now() + timedelta(seconds=job.first_s or job.every_s),
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )
    scheduler.start()
    # No group: what the context raises stays as it is.
    check = asyncio.create_task(_follow_clock(scheduler, now))  # noqa: TID251 - ended below
    try:
        yield
    finally:
        check.cancel()
        scheduler.pause()
        await runs.drain()
        scheduler.shutdown()
        await asyncio.sleep(0)  # it ends in the loop's next round


async def _follow_clock(scheduler: AsyncIOScheduler, now: Callable[[], datetime]) -> None:
    """Run all jobs after the wall clock was set back: they would wait until it has caught up."""
    while True:
        wall, steady = now(), time.monotonic()
        await asyncio.sleep(CLOCK_CHECK_S)
        passed = timedelta(seconds=time.monotonic() - steady)
        if now() - wall < passed - CLOCK_STEP:
            log.warning("clock.set_back")
            for job in scheduler.get_jobs():
                job.modify(next_run_time=now())


class _Runs:
    """The runs under way. Logs once when the database goes away, and once when it is back."""

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        self._on_failure = on_failure
        self._under_way: set[asyncio.Task[None]] = set()
        self._without_storage: set[str] = set()
        self._away_since = 0.0
        self._missed = 0

    async def run_apart(self, name: str, job: Job) -> None:
        """Run it in a task that the scheduler's own shutdown does not cancel."""
        task = asyncio.create_task(self.run(name, job))  # noqa: TID251 - see `drain`
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.wait({task})

    async def drain(self) -> None:
        """Wait for the running runs, and cancel them after `DRAIN_S`."""
        if not self._under_way:
            return
        _, late = await asyncio.wait(self._under_way, timeout=DRAIN_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def run(self, name: str, job: Job) -> None:
        """Run it once. Raises nothing but a cancellation."""
        try:
            async with asyncio.timeout(job.deadline_s) as deadline:
                await job.run()
            self._storage_used(name)
        except StorageUnavailable as error:  # no fault of the job
            self._storage_away(name, str(error))
        except Exception:  # one job must not stop the rest; it runs again
            log.exception("job_failed", job=name, deadline=deadline.expired())
            self._on_failure(name)

    def _storage_away(self, name: str, why: str) -> None:
        if not self._without_storage:
            self._away_since, self._missed = time.monotonic(), 0
            log.warning("database.down", job=name, why=why)
        self._without_storage.add(name)
        self._missed += 1

    def _storage_used(self, name: str) -> None:
        if name not in self._without_storage:
            return
        self._without_storage.discard(name)
        if not self._without_storage:
            away_s = round(time.monotonic() - self._away_since)
            log.info("database.recovered", away_s=away_s, missed=self._missed)
