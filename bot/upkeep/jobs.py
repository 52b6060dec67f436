"""The clock's work: short idempotent jobs on every replica; rows decide what is due."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

log = structlog.get_logger(__name__)

Job = Callable[[], Awaitable[object]]


@asynccontextmanager
async def running(jobs: Mapping[str, tuple[float, Job]]) -> AsyncIterator[None]:
    """Run each job at once and then every so many seconds, until the context ends.

    A job that is under way by then is cancelled.
    """
    ended = asyncio.Event()
    scheduler = AsyncIOScheduler(
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    )
    for name, (every_s, job) in jobs.items():
        scheduler.add_job(_guarded(name, job, ended), "interval", seconds=every_s, id=name)
    for name, (_, job) in jobs.items():
        await _guarded(name, job, ended)()
    scheduler.start()
    try:
        yield
    finally:
        ended.set()
        scheduler.shutdown(wait=False)


def _guarded(name: str, job: Job, ended: asyncio.Event) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        try:
            await job()
        except asyncio.CancelledError:  # the scheduler logs whatever reaches it as a failure
            if not ended.is_set():
                raise
        except Exception:  # a job must not take the scheduler with it; it runs again
            log.exception("job_failed", job=name)

    return run
