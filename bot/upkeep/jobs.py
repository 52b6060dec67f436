"""The clock's work: short idempotent jobs on every replica; rows decide what is due."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot.ports.failures import StorageUnavailable

log = structlog.get_logger(__name__)

Job = Callable[[], Awaitable[object]]


@asynccontextmanager
async def running(jobs: Mapping[str, tuple[float, Job]]) -> AsyncIterator[None]:
    """Run each job at once and then every so many seconds, until the context ends.

    A job that is under way by then is cancelled.
    """
    ended = asyncio.Event()
    scheduler = AsyncIOScheduler(
        timezone=UTC,  # else the machine's, which a library of its own finds out
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    storage = _Storage()
    guarded = {name: _guarded(name, job, ended, storage) for name, (_, job) in jobs.items()}
    for name, (every_s, _) in jobs.items():
        scheduler.add_job(guarded[name], "interval", seconds=every_s, id=name)
    for run in guarded.values():
        await run()
    scheduler.start()
    try:
        yield
    finally:
        ended.set()
        scheduler.shutdown(wait=False)


class _Storage:
    """Whether the database can be used, as the jobs of one process find: told once, not by each."""

    def __init__(self) -> None:
        self._without: set[str] = set()
        self._since = 0.0
        self._missed = 0

    def away(self, job: str, why: str) -> None:
        """A job could not be done for it."""
        if not self._without:
            self._since, self._missed = time.monotonic(), 0
            log.warning("storage.away", job=job, why=why)
        self._without.add(job)
        self._missed += 1

    def used(self, job: str) -> None:
        """A job was done."""
        if job not in self._without:
            return
        self._without.discard(job)
        if not self._without:
            away_s = round(time.monotonic() - self._since)
            log.info("storage.back", away_s=away_s, missed=self._missed)


def _guarded(
    name: str, job: Job, ended: asyncio.Event, storage: _Storage
) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        try:
            await job()
            storage.used(name)
        except StorageUnavailable as error:  # it is no fault of the job
            storage.away(name, str(error))
        except asyncio.CancelledError:  # the scheduler logs whatever reaches it as a failure
            if not ended.is_set():
                raise
        except Exception:  # a job must not take the scheduler with it; it runs again
            log.exception("job_failed", job=name)

    return run
