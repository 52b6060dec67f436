"""The clock's work: short idempotent jobs on every replica; rows decide what is due."""

import asyncio
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
    guarded = {name: _guarded(name, job, ended) for name, (_, job) in jobs.items()}
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


def _guarded(name: str, job: Job, ended: asyncio.Event) -> Callable[[], Awaitable[None]]:
    missed = 0

    async def run() -> None:
        nonlocal missed
        try:
            await job()
            if missed:
                log.info("job.goes_on", job=name, missed=missed)
                missed = 0
        except StorageUnavailable as error:  # told once; the database is no fault of the job
            missed += 1
            if missed == 1:
                log.warning("job.storage_unavailable", job=name, why=str(error))
        except asyncio.CancelledError:  # the scheduler logs whatever reaches it as a failure
            if not ended.is_set():
                raise
        except Exception:  # a job must not take the scheduler with it; it runs again
            log.exception("job_failed", job=name)

    return run
