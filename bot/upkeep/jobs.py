"""The clock's work: short idempotent jobs on every replica; rows decide what is due."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import structlog

from bot.ports.failures import StorageUnavailable

log = structlog.get_logger(__name__)

Job = Callable[[], Awaitable[object]]
_DUE: Final = "due"


class Prompted(NamedTuple):
    """Jobs that run when `look`, asked every so many seconds, gives their name.

    One that is under way runs once more when it has ended.
    """

    every_s: float
    look: Callable[[], Awaitable[Collection[str]]]
    jobs: Mapping[str, Job]


@asynccontextmanager
async def running(jobs: Mapping[str, tuple[float, Job]], prompted: Prompted) -> AsyncIterator[None]:
    """Run each job at once and then every so many seconds, until the context ends.

    A job that is under way by then is cancelled.
    """
    storage = _Storage()
    guarded = {name: _guarded(name, job, storage) for name, (_, job) in jobs.items()}
    waiting = {name: _guarded(name, job, storage, _DUE) for name, job in prompted.jobs.items()}
    for run in (*guarded.values(), *waiting.values()):
        await run()
    due = {name: asyncio.Event() for name in waiting}

    async def look() -> None:
        for name in await prompted.look():
            due[name].set()

    clock = [_again_and_again(jobs[name][0], run) for name, run in guarded.items()]
    clock.append(_again_and_again(prompted.every_s, _guarded(_DUE, look, storage)))
    clock += [_whenever(due[name], run) for name, run in waiting.items()]
    # No group: what the context raises stays as it is.
    tasks = [asyncio.create_task(each) for each in clock]  # noqa: TID251 - ended below
    try:
        yield
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _whenever(due: asyncio.Event, run: Callable[[], Awaitable[None]]) -> None:
    while True:
        await due.wait()
        due.clear()
        await run()


async def _again_and_again(every_s: float, run: Callable[[], Awaitable[None]]) -> None:
    """At whole multiples of the interval; those that pass while it runs are left out."""
    now = asyncio.get_running_loop().time
    due = now()
    while True:
        late_s = max(0.0, now() - due)  # a sleep may end a little early
        due += every_s * (1 + late_s // every_s)
        await asyncio.sleep(due - now())
        await run()


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
    name: str, job: Job, storage: _Storage, looked_by: str = ""
) -> Callable[[], Awaitable[None]]:
    """`looked_by`: the job that runs it, and whose success tells as well that the database is back."""

    async def run() -> None:
        try:
            await job()
            storage.used(looked_by or name)
        except StorageUnavailable as error:  # it is no fault of the job
            storage.away(looked_by or name, str(error))
        except Exception:  # a job must not take the clock with it; it runs again
            log.exception("job_failed", job=name)

    return run
