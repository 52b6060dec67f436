"""One database behind a URL: transactions, reads, patience. Statements live in the repositories.

SQLite: one writer at a time, so a transaction that reads and then writes never meets a stale
snapshot, and a few readers beside it. PostgreSQL: as many as there are threads. `transact` and
`fetch` run whole in a thread; `write` and `read` are for what needs a connection across awaits.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bot.ports.failures import StorageUnavailable
from bot.store.columns import redact_with
from bot.store.dialect import Connection, ConnectionLost, Work, now, storage_errors
from bot.store.sealing import SEALING, WITHOUT_KEY, Sealing
from bot.store.sqlite_threads import GatedConnection, SqliteThreads
from bot.store.thread_jobs import Limits

_T = TypeVar("_T")

SQLITE_BUSY_S = 5.0  # other writers of the file are short; beyond this something is wrong
SQLITE_READERS = 4
# Of PostgreSQL: threads that write, and that read, each with a connection of its own. One waits for
# a row's lock as long as another transaction has it.
WRITERS, READERS = 10, 5
WRITERS_BESIDE, READERS_BESIDE = 3, 1  # of an event loop that does short work alone
POOL_SIZE, POOL_OVERFLOW = 5, 5  # of what needs a connection across awaits
CONNECT_TIMEOUT_S = 5.0
# From when it has its connection, and on SQLite the file. Waiting for those has a bound of its own,
# longer because a queue is no fault: a turn can wait, and what people wait on gives up by itself.
TRANSACTION_TIMEOUT_S = 15.0
QUEUE_TIMEOUT_S = 60.0
# A process that freezes, or whose machine is gone, between two statements leaves its locks behind;
# PostgreSQL ends it after this, so that a successor is not kept waiting much longer than its lease.
IDLE_IN_TRANSACTION_S = 6.0
# A PostgreSQL restart takes a few seconds; the waits add up to nine.
PATIENCE_S = (0.05, 0.2, 0.5, 1.0, 2.0, 2.5, 3.0)
_WAL_TRIES = 40
_WAL_RETRY_S = 0.05


class Transactions(Protocol):
    """Threads that run work whole: `bot.store.sqlite_threads`, `bot.store.postgres_threads`."""

    async def transact(self, work: Work[_T], limits: Limits) -> _T:
        """Run `work` in one transaction: committed at the end, rolled back by any exception."""
        ...

    async def fetch(self, work: Work[_T], limits: Limits) -> _T:
        """Run reading `work`; every statement sees what is committed when it starts."""
        ...

    async def close(self) -> None:
        """Wait for what still runs and give the connections back."""
        ...


class Database:
    """Transactions on one database. Every method raises StorageUnavailable when it is not there."""

    def __init__(
        self,
        writer: AsyncEngine,
        reader: AsyncEngine,
        patience_s: Sequence[float],
        threads: Transactions,
        another: "Callable[[], Database] | None" = None,
    ) -> None:
        """`another` makes one for what another event loop asks; None: it may ask this one."""
        self._writer = writer
        self._reader = reader
        self._patience_s = patience_s
        self._threads = threads
        self._another = another

    @classmethod
    async def open(
        cls,
        url: str,
        patience_s: Sequence[float] = PATIENCE_S,
        sealing: Sealing = WITHOUT_KEY,
    ) -> "Database":
        """Connect lazily to `sqlite+aiosqlite:///file` or `postgresql+asyncpg://…`.

        A SQLite file is created and set to write-ahead logging at once. Raises ValueError for any
        other URL, StorageUnavailable. `patience_s` are the waits before each new try of what is
        idempotent. `sealing` is how rows of the audit trail are written on its connections.
        """
        parsed = sa.make_url(url)
        if parsed.drivername == "postgresql+asyncpg":
            name = f"kortex-{uuid.uuid4().hex}"
            return await asyncio.to_thread(_postgresql, parsed, name, sealing, patience_s)
        if parsed.drivername == "sqlite+aiosqlite" and parsed.database not in (
            None,
            "",
            ":memory:",
        ):
            # A thread, because making an engine resolves paths and imports the driver.
            writer, reader, threads = await asyncio.to_thread(_sqlite_engines, parsed, sealing)
            database = cls(writer, reader, patience_s, threads)
            try:
                await database._use_wal()
            except BaseException:
                await database.close()
                raise
            return database
        raise ValueError(
            f"database url: {parsed.drivername} is not sqlite+aiosqlite:///file or postgresql+asyncpg://"
        )

    @asynccontextmanager
    async def beside(self) -> AsyncIterator["Database"]:
        """The same one for the event loop of the caller, which may be another."""
        if self._another is None:
            yield self
            return
        another = await asyncio.to_thread(self._another)
        try:
            yield another
        finally:
            await another.close()

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._writer.dialect.name

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end, rolled back by any exception."""
        async with _in_time(self._writer.begin()) as connection:
            yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection for reading; every statement sees what is committed when it starts."""
        async with _in_time(self._reader.connect()) as connection:
            yield connection

    async def connect(self) -> AsyncConnection:
        """A connection that the caller closes; every statement on it is a transaction."""
        with storage_errors():
            return await self._reader.connect()

    async def transact(self, work: Work[_T], *, again: bool = True) -> _T:
        """Run `work` in one transaction.

        `again`: once more if the connection was lost, which may have been after the commit.
        """

        async def attempt() -> _T:
            with storage_errors():
                return await self._threads.transact(work, _limits())

        return await (self._patient(attempt) if again else attempt())

    async def fetch(self, work: Work[_T]) -> _T:
        """Run reading `work`, again if the connection was lost."""

        async def attempt() -> _T:
            with storage_errors():
                return await self._threads.fetch(work, _limits())

        return await self._patient(attempt)

    async def ping(self) -> None:
        """Raises StorageUnavailable unless a statement can be run now."""
        async with self.read() as connection:
            await connection.execute(sa.select(sa.literal(1)))

    async def now(self) -> datetime:
        """The database's clock."""

        async def ask(connection: Connection) -> datetime:
            found = await connection.execute(sa.select(now()))
            return cast("datetime", found.scalar_one())

        return await self.fetch(ask)

    async def schema_head(self) -> str | None:
        """The revision the tables are at; None for an empty database."""

        async def ask() -> str | None:
            async with self.read() as connection:
                if not await connection.run_sync(_is_migrated):
                    return None
                found: str | None = await connection.scalar(
                    sa.select(sa.column("version_num")).select_from(sa.table("alembic_version"))
                )
                return found

        return await self._patient(ask)

    async def close(self) -> None:
        """Give the connections back."""
        await self._threads.close()
        await self._writer.dispose()
        await self._reader.dispose()

    async def _patient(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        for wait_s in self._patience_s:
            try:
                return await attempt()
            except ConnectionLost:
                await asyncio.sleep(wait_s)
        return await attempt()

    async def _use_wal(self) -> None:
        # The switch ignores busy_timeout: two processes on a fresh file can collide.
        for _ in range(_WAL_TRIES):
            try:
                with storage_errors():
                    async with self._reader.connect() as connection:
                        await connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                        return
            except StorageUnavailable as error:
                if "locked" not in str(error):
                    raise
                await asyncio.sleep(_WAL_RETRY_S)
        raise StorageUnavailable("the database file is locked by another process")


def _limits() -> Limits:
    return Limits(QUEUE_TIMEOUT_S, TRANSACTION_TIMEOUT_S)


@asynccontextmanager
async def _in_time(
    opening: AbstractAsyncContextManager[AsyncConnection],
) -> AsyncIterator[AsyncConnection]:
    with storage_errors():
        async with asyncio.timeout(QUEUE_TIMEOUT_S) as limit, opening as connection:
            limit.reschedule(asyncio.get_running_loop().time() + TRANSACTION_TIMEOUT_S)
            yield connection


def _is_migrated(connection: sa.Connection) -> bool:
    return sa.inspect(connection).has_table("alembic_version")


def _reading(engine: AsyncEngine) -> AsyncEngine:
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def _postgresql(
    url: sa.URL, name: str, sealing: Sealing, patience_s: Sequence[float], *, beside: bool = False
) -> Database:
    engine = create_async_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_timeout=QUEUE_TIMEOUT_S,
        hide_parameters=True,
        connect_args={
            "timeout": CONNECT_TIMEOUT_S,
            "server_settings": {
                # By this name another replica ends what a frozen one left open.
                "application_name": name,
                "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S * 1000:.0f}",
            },
        },
    )
    from bot.store.postgres_threads import PostgresThreads, engine_of  # and its driver

    threaded = engine_of(as_psycopgs(url), name, CONNECT_TIMEOUT_S, IDLE_IN_TRANSACTION_S)
    for each in (engine, threaded):
        redact_with(each.dialect, sealing.line)
    options = {SEALING: sealing}
    size = (WRITERS_BESIDE, READERS_BESIDE) if beside else (WRITERS, READERS)
    threads = PostgresThreads(threaded.execution_options(**options), *size)
    engine = engine.execution_options(**options)
    another = partial(_postgresql, url, name, sealing, patience_s, beside=True)
    return Database(engine, _reading(engine), patience_s, threads, another)


def as_psycopgs(url: sa.URL) -> sa.URL:
    """The same PostgreSQL under the driver that libpq comes with."""
    mode = {"sslmode": url.query["ssl"]} if "ssl" in url.query else {}
    bare = url.set(drivername="postgresql+psycopg").difference_update_query(["ssl"])
    return bare.update_query_dict(mode)


def _sqlite_engines(
    url: sa.URL, sealing: Sealing
) -> tuple[AsyncEngine, AsyncEngine, SqliteThreads]:
    options = {SEALING: sealing}
    thread_writer, writer = _in_threads(url, writes=True), _sqlite(url, writes=True)
    for engine in (thread_writer, writer):
        redact_with(engine.dialect, sealing.line)
    threads = SqliteThreads(
        thread_writer.execution_options(**options), _in_threads(url, writes=False), SQLITE_READERS
    )
    return writer.execution_options(**options), _sqlite(url, writes=False), threads


def _sqlite(url: sa.URL, *, writes: bool) -> AsyncEngine:
    engine = create_async_engine(url, **_sqlite_options(1 if writes else SQLITE_READERS))
    _configure(engine.sync_engine, writes=writes)
    return engine


def _in_threads(url: sa.URL, *, writes: bool) -> sa.Engine:
    size = 1 if writes else SQLITE_READERS + 1  # and one for checkpoints
    engine = sa.create_engine(url.set(drivername="sqlite"), **_sqlite_options(size))
    _configure(engine, writes=False)  # its thread begins transactions itself
    return engine


def _sqlite_options(size: int) -> dict[str, Any]:
    return {
        "pool_size": size,
        "max_overflow": 0,
        "pool_timeout": QUEUE_TIMEOUT_S,
        "hide_parameters": True,
        "connect_args": {
            "timeout": SQLITE_BUSY_S,
            "factory": GatedConnection,
            "check_same_thread": False,  # a pool does not know its threads apart
        },
    }


def _configure(engine: sa.Engine, *, writes: bool) -> None:
    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, record: object) -> None:  # noqa: ARG001 - SQLAlchemy's signature
        # The driver would begin transactions itself, and only before the first write.
        connection.isolation_level = None
        cursor = connection.cursor()
        # FULL, not NORMAL: a decision must be on the disk before the action it allows, even if the
        # power fails. It costs one fsync per transaction.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    if writes:

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
