"""What we ask of the workflow library: steps on record, a clock on SQLite, a broom, and an end.

A step that ends its process again and again is given up. The library stamps rows with
`unixepoch('subsec')` on Python 3.12 and newer, whatever SQLite that Python is linked with; before
SQLite 3.42 the function answers NULL. Records of work that has ended hold what was asked, said and
read, until they are deleted.
"""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, StepOptions
from pydantic import JsonValue

from bot.engine.config import EngineConfig
from bot.engine.quiet import OwnQueue, stop_needless_clocks
from bot.ports.failures import GivenUp, StorageUnavailable, SurfaceFailed
from bot.store.engines import SQLITE_BUSY_S

SUBSEC_SINCE = (3, 42, 0)  # https://sqlite.org/releaselog/3_42_0.html

_ENDED: Final = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
# Their deletion holds SQLite's writer for some 60 ms, and a run is part of a start.
_AT_ONCE: Final = 200
_FORGET_S: Final = 0.5

MAX_EXECUTOR_THREADS = 32  # DBOS leaves it unbounded: a thread per live workflow
HAND_OVER_S = 5.0  # for cancelled work to close what it holds

RETRIES: Final = 7  # after 0.5 s, doubled: half a minute, beside the database's own patience
_GIVEN_UP: Final = "kortex:given-up"
Run = Callable[[], Awaitable[JsonValue]]


class MillisecondClock(sqlite3.Connection):
    """A `factory` for the driver: `unixepoch('subsec')` is known."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if sqlite3.sqlite_version_info < SUBSEC_SINCE:
            self.create_function("unixepoch", 1, _unixepoch)


def milliseconds() -> dict[str, object]:
    """What SQLAlchemy's `create_engine` takes, to connect so. New each time: it is written to."""
    return {"connect_args": {"factory": MillisecondClock, "timeout": SQLITE_BUSY_S}}


def _unixepoch(modifier: str) -> float | None:
    return time.time_ns() // 1_000_000 / 1000 if modifier == "subsec" else None


def dbos_config(config: EngineConfig, executor: str, own_queue: OwnQueue) -> DBOSConfig:
    """What DBOS is started with as that executor."""
    wait_for_lost_servers()
    stop_needless_clocks(own_queue, on_postgresql=config.sqlite_path is None)
    return DBOSConfig(
        name="kortex",
        system_database_url=config.database_url,
        executor_id=executor,
        application_version=config.version,
        db_engine_kwargs=milliseconds() if config.sqlite_path else None,
        serializer=DBOSPortableJSONSerializer(),
        max_executor_threads=MAX_EXECUTOR_THREADS,
        log_level="ERROR",
        enable_otlp=False,
    )


async def end_dbos(own_queue: OwnQueue) -> None:
    """Destroy it, and give the loop threads of its own again.

    DBOS puts its own in the place of the loop's default and shuts them down; whatever is closed
    afterwards would end in "cannot schedule new futures after shutdown".
    """
    own_queue.set()
    loop, threads = asyncio.get_running_loop(), ThreadPoolExecutor()
    loop.set_default_executor(threads)
    await loop.run_in_executor(threads, partial(DBOS.destroy, destroy_registry=True))
    loop.set_default_executor(threads)  # what was cancelled late may have asked DBOS once more


async def forget_ended(older_than_s: float, within_s: float = _FORGET_S) -> int:
    """Delete records of work that was started before and has ended, the oldest first; how many.

    It begins no more after `within_s`, whatever is left. Work whose record is gone would run again
    if it were asked for again. Needs a running engine.
    """
    before = datetime.now(UTC) - timedelta(seconds=older_than_s)
    until = time.monotonic() + within_s
    deleted = 0
    while True:
        ended = await DBOS.list_workflows_async(
            status=_ENDED,
            end_time=before.isoformat(),
            limit=_AT_ONCE,
            load_input=False,
            load_output=False,
        )
        await DBOS.delete_workflows_async([w.workflow_id for w in ended])
        deleted += len(ended)
        if len(ended) < _AT_ONCE or time.monotonic() >= until:
            return deleted


def is_worth_retrying(error: BaseException) -> bool:
    """Whether a step that failed so is tried again."""
    return isinstance(error, StorageUnavailable) or (
        isinstance(error, SurfaceFailed) and error.retryable
    )


def _options(name: str) -> StepOptions:
    return StepOptions(
        name=name,
        retries_allowed=True,
        max_attempts=RETRIES,
        interval_seconds=0.5,
        should_retry=is_worth_retrying,
    )


class DurableJournal:
    """`bot.ports.durability.Journal` inside a workflow.

    With `gives_up` the first step that is not on record does not run: it is recorded as given up and
    raised as GivenUp, now and in every replay. Those after it run.
    """

    def __init__(self, *, gives_up: bool = False) -> None:
        self._gives_up = gives_up

    async def step(
        self,
        name: str,
        run: Run,
        *,
        with_next: bool = False,  # noqa: ARG002 - each has a record of its own
    ) -> JsonValue:
        """One step, checkpointed. Raises GivenUp."""
        return value_of(await DBOS.run_step_async(_options(name), self._body(name, run)))

    async def steps(
        self,
        parts: Sequence[tuple[str, Run]],
        *,
        only_read: bool = False,  # noqa: ARG002
    ) -> Sequence[JsonValue]:
        """Several at once; their ids are drawn in order, so a replay finds each its own."""
        reserved = [(DBOS.reserve_step(), name, self._body(name, run)) for name, run in parts]
        running = (slot.run_async(_options(name), body) for slot, name, body in reserved)
        return [value_of(value) for value in await all_of(running)]

    def _body(self, name: str, run: Run) -> Callable[[], Coroutine[None, None, JsonValue]]:
        gives_up = self._gives_up  # all of those that run at once

        async def body() -> JsonValue:
            if gives_up:
                self._gives_up = False
                return given_up(name)
            return await run()

        return body


async def all_of(running: Iterable[Awaitable[JsonValue]]) -> list[JsonValue]:
    """Their values, in order. Raises what the first to fail raised, when all others have ended."""

    async def one(each: Awaitable[JsonValue]) -> JsonValue:
        return await each

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(each)) for each in running]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def given_up(name: str) -> JsonValue:
    """What is on record in place of the value of a step that ends its process again and again."""
    return {_GIVEN_UP: name}


def value_of(recorded: JsonValue) -> JsonValue:
    """What is on record, as the step's value. Raises GivenUp."""
    if isinstance(recorded, dict) and _GIVEN_UP in recorded:
        raise GivenUp(str(recorded[_GIVEN_UP]))
    return recorded


def wait_for_lost_servers() -> None:
    """Have every connection of psycopg's that a server refused or dropped count as lost.

    DBOS waits for a lost database, but knows some of the driver's words for it only: a refusal behind
    a socket, a name that does not resolve and a reset would end work for good. What the server itself
    says has a code, https://www.postgresql.org/docs/current/errcodes-appendix.html.
    """
    if not sa.event.contains(sa.Engine, "handle_error", _as_lost):
        sa.event.listen(sa.Engine, "handle_error", _as_lost)


def _as_lost(context: sa.engine.ExceptionContext) -> None:
    error = context.original_exception
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        context.is_disconnect = True
