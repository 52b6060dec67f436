"""One database behind a URL: transactions, reads, patience. Statements live in the repositories.

SQLite: one writer at a time, so a transaction that reads and then writes never meets a stale
snapshot, and a few readers beside it. PostgreSQL: as many as there are threads. Every transaction
runs whole in one of them.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

import sqlalchemy as sa

from bot.ports.failures import StorageUnavailable
from bot.store.address import POSTGRESQL, addressed
from bot.store.columns import redact_with
from bot.store.dialect import Connection, ConnectionLost, Work, now, storage_errors
from bot.store.prepared import prepared
from bot.store.sealing import SEALING, WITHOUT_KEY, Sealing
from bot.store.sqlite_threads import GatedConnection, SqliteThreads
from bot.store.thread_jobs import Limits

_T = TypeVar("_T")


class Size(NamedTuple):
    """How many threads, each with a connection of its own."""

    writers: int
    readers: int


SQLITE_BUSY_S = 5.0  # other writers of the file are short; beyond this something is wrong
SQLITE_READERS = 4
# Of PostgreSQL: threads that write, and that read, each with a connection of its own. One waits for
# a row's lock as long as another transaction has it.
SIZE = Size(writers=10, readers=5)
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


NOW: Final = prepared(sa.select(now()))
NOTHING: Final = prepared(sa.select(sa.literal(1)))


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
        dialect: str,
        threads: Transactions,
        patience_s: Sequence[float],
        another: "Callable[[Size], Database] | None" = None,
    ) -> None:
        """`another` makes one with threads of its own; None: there is no use for one."""
        self._dialect = dialect
        self._threads = threads
        self._patience_s = patience_s
        self._another = another

    @classmethod
    async def open(
        cls,
        url: str,
        patience_s: Sequence[float] = PATIENCE_S,
        sealing: Sealing = WITHOUT_KEY,
    ) -> "Database":
        """Connect lazily to `sqlite:///file` or `postgresql://…`.

        A SQLite file is created and set to write-ahead logging at once. Raises ValueError for any
        other URL, StorageUnavailable. `patience_s` are the waits before each new try of what is
        idempotent. `sealing` is how rows of the audit trail are written on its connections.
        """
        parsed = addressed(url)
        # Threads, because making an engine resolves paths and imports the driver.
        if parsed.drivername == POSTGRESQL:
            name = f"kortex-{uuid.uuid4().hex}"
            return await asyncio.to_thread(_postgresql, parsed, name, sealing, patience_s, SIZE)
        threads = await asyncio.to_thread(_sqlite, parsed, sealing)
        try:
            await _use_wal(threads)
        except BaseException:
            await threads.close()
            raise
        return cls("sqlite", threads, patience_s)

    async def another(self, size: "Size") -> "Database":
        """The same PostgreSQL over so many threads of its own, which the caller closes."""
        if self._another is None:
            raise ValueError("one process owns the file")
        return await asyncio.to_thread(self._another, size)

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._dialect

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
        with storage_errors():
            await self._threads.fetch(_answer, _limits())

    async def now(self) -> datetime:
        """The database's clock."""

        async def ask(connection: Connection) -> datetime:
            found = await connection.execute(NOW)
            return cast("datetime", found.scalar_one())

        return await self.fetch(ask)

    async def schema_head(self) -> str | None:
        """The revision the tables are at; None for an empty database."""

        async def ask(connection: Connection) -> str | None:
            if not sa.inspect(connection.sync_connection).has_table("alembic_version"):
                return None
            found: str | None = await connection.scalar(
                sa.select(sa.column("version_num")).select_from(sa.table("alembic_version"))
            )
            return found

        return await self.fetch(ask)

    async def close(self) -> None:
        """Give the connections back."""
        await self._threads.close()

    async def _patient(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        for wait_s in self._patience_s:
            try:
                return await attempt()
            except ConnectionLost:
                await asyncio.sleep(wait_s)
        return await attempt()


async def _use_wal(threads: Transactions) -> None:
    # The switch ignores busy_timeout: two processes on a fresh file can collide.
    for _ in range(_WAL_TRIES):
        try:
            with storage_errors():
                return await threads.fetch(_switch_to_wal, _limits())
        except StorageUnavailable as error:
            if "locked" not in str(error):
                raise
            await asyncio.sleep(_WAL_RETRY_S)
    raise StorageUnavailable("the database file is locked by another process")


def _limits() -> Limits:
    return Limits(QUEUE_TIMEOUT_S, TRANSACTION_TIMEOUT_S)


async def _answer(connection: Connection) -> None:
    await connection.execute(NOTHING)


async def _switch_to_wal(connection: Connection) -> None:
    connection.sync_connection.exec_driver_sql("PRAGMA journal_mode = WAL")


def _postgresql(
    url: sa.URL, name: str, sealing: Sealing, patience_s: Sequence[float], size: Size
) -> Database:
    # And its driver. By this name another replica ends what a frozen one left open.
    from bot.store.postgres_threads import PostgresThreads, engine_of

    engine = engine_of(url, name, CONNECT_TIMEOUT_S, IDLE_IN_TRANSACTION_S)
    redact_with(engine.dialect, sealing.line)
    threads = PostgresThreads(engine.execution_options(**{SEALING: sealing}), *size)
    another = partial(_postgresql, url, name, sealing, patience_s)
    return Database("postgresql", threads, patience_s, another)


def _sqlite(url: sa.URL, sealing: Sealing) -> SqliteThreads:
    writer = _sqlite_engine(url, connections=1)
    reader = _sqlite_engine(url, SQLITE_READERS + 1)  # and one for checkpoints
    redact_with(writer.dialect, sealing.line)
    sealed = writer.execution_options(**{SEALING: sealing})
    return SqliteThreads(sealed, reader, SQLITE_READERS)


def _sqlite_engine(url: sa.URL, connections: int) -> sa.Engine:
    engine = sa.create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=QUEUE_TIMEOUT_S,
        hide_parameters=True,
        connect_args={
            "timeout": SQLITE_BUSY_S,
            "factory": GatedConnection,
            "check_same_thread": False,  # a pool does not know its threads apart
        },
    )

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

    return engine
