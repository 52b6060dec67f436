"""DBOS's configuration, its end, and the deletion of its old records."""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer

from bot.engine.config import EngineConfig
from bot.store.engines import IDLE_IN_TRANSACTION_S, SQLITE_BUSY_S

SUBSEC_SINCE: Final = (3, 42, 0)  # https://sqlite.org/releaselog/3_42_0.html
MAX_EXECUTOR_THREADS: Final = 32  # without a limit DBOS uses a thread per live workflow
# Kortex uses neither DBOS's events nor its schedules, so these polls may be rare.
NOTIFY_S: Final = 1.0
SCHEDULES_S: Final = 3600.0

_ENDED: Final = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
# A deletion of this size holds SQLite's writer for about 60 ms, and one runs at every start.
_BATCH: Final = 200
_FORGET_S: Final = 0.5


class MillisecondClock(sqlite3.Connection):
    """A connection `factory` that adds `unixepoch('subsec')` to SQLite versions without it.

    DBOS stamps its rows with that function. SQLite answers NULL to it before 3.42.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if sqlite3.sqlite_version_info < SUBSEC_SINCE:
            self.create_function("unixepoch", 1, _unixepoch)


def engine_arguments(url: str, *, pgbouncer: bool) -> dict[str, Any]:
    """Arguments of SQLAlchemy's `create_engine` for DBOS's connections. New each time: DBOS changes them."""
    if url.startswith("sqlite"):
        return {"connect_args": {"factory": MillisecondClock, "timeout": SQLITE_BUSY_S}}
    return {"connect_args": {"prepare_threshold": None}} if pgbouncer else {}


def _unixepoch(modifier: str) -> float | None:
    return time.time_ns() // 1_000_000 / 1000 if modifier == "subsec" else None


def dbos_config(config: EngineConfig, executor: str) -> DBOSConfig:
    retry_lost_connections()
    return DBOSConfig(
        name="kortex",
        system_database_url=config.database_url,
        executor_id=executor,
        application_version=config.version,
        db_engine_kwargs=engine_arguments(config.database_url, pgbouncer=config.pgbouncer),
        # PgBouncer lends no sessions: nothing can listen, and SET would reach other programs.
        use_listen_notify=not config.pgbouncer,
        sys_db_idle_transaction_timeout_sec=0 if config.pgbouncer else IDLE_IN_TRANSACTION_S,
        serializer=DBOSPortableJSONSerializer(),
        max_executor_threads=MAX_EXECUTOR_THREADS,
        notification_coalesce_sec=NOTIFY_S,
        scheduler_polling_interval_sec=SCHEDULES_S,
        log_level="ERROR",
        enable_otlp=False,
    )


async def end_dbos() -> None:
    """Destroy DBOS, and give the event loop a new thread pool.

    DBOS replaces the loop's default pool with its own and shuts that down. Without a new pool, later
    calls fail with "cannot schedule new futures after shutdown".
    """
    loop, threads = asyncio.get_running_loop(), ThreadPoolExecutor()
    loop.set_default_executor(threads)
    await loop.run_in_executor(threads, partial(DBOS.destroy, destroy_registry=True))
    # Cancelled work may have called DBOS in the meantime, which sets its pool again.
    loop.set_default_executor(threads)


async def forget_ended(older_than_s: float, within_s: float = _FORGET_S) -> int:
    """Delete records of workflows that ended before then, oldest first. Returns how many.

    It starts no new batch after `within_s`. A deleted workflow would run again if it were started
    again under its id. Needs a running engine.
    """
    before = datetime.now(UTC) - timedelta(seconds=older_than_s)
    until = time.monotonic() + within_s
    deleted = 0
    while True:
        ended = await DBOS.list_workflows_async(
            status=_ENDED,
            end_time=before.isoformat(),
            limit=_BATCH,
            load_input=False,
            load_output=False,
        )
        await DBOS.delete_workflows_async([w.workflow_id for w in ended])
        deleted += len(ended)
        if len(ended) < _BATCH or time.monotonic() >= until:
            return deleted


def retry_lost_connections() -> None:
    """Mark every connection that psycopg lost or could not open as disconnected.

    DBOS retries lost connections, but recognises only some of psycopg's messages. A refused socket,
    an unresolved name and a reset would end a workflow for good. Errors from the server itself carry
    a code: https://www.postgresql.org/docs/current/errcodes-appendix.html.
    """
    if not sa.event.contains(sa.Engine, "handle_error", _mark_lost):
        sa.event.listen(sa.Engine, "handle_error", _mark_lost)


def _mark_lost(context: sa.engine.ExceptionContext) -> None:
    error = context.original_exception
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        context.is_disconnect = True
