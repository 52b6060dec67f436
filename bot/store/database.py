"""One database behind a URL: transactions, reads and retries. Statements live in the repositories.

SQLite has one writer at a time, so a transaction that reads and then writes never meets a stale
snapshot. PostgreSQL has as many transactions as the pool has connections.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.ports.failures import DatabaseReplaced, StorageUnavailable
from bot.store.address import POSTGRESQL, addressed, is_behind_pgbouncer
from bot.store.columns import redact_with
from bot.store.dialect import INSERT, ConnectionLost, Parameters, Work, now, storage_errors
from bot.store.engines import (
    POOL_TIMEOUT_S,
    STATEMENT_TIMEOUT_S,
    WRITES,
    postgresql_engine,
    sqlite_engine,
)
from bot.store.sealing import SEALING, WITHOUT_KEY, Sealing

_T = TypeVar("_T")

SQLITE_CONNECTIONS = 8  # each has a thread
POSTGRESQL_CONNECTIONS = 15
# For a connection, and on SQLite for the writer's turn. A queue is no fault: turns can wait.
QUEUE_TIMEOUT_S = POOL_TIMEOUT_S
TRANSACTION_TIMEOUT_S = (
    STATEMENT_TIMEOUT_S  # from when it has its connection, and on SQLite the file
)
# A PostgreSQL restart takes a few seconds; these waits add up to nine.
PATIENCE_S = (0.05, 0.2, 0.5, 1.0, 2.0, 2.5, 3.0)
# A cancelled caller waits this long for the rollback. A driver may need seconds on a dead server.
LEAVE_S = 0.1
CLOSE_S = 10.0
_WAL_TRIES = 40
_WAL_RETRY_S = 0.05

NOW: Final = sa.select(now())
NOTHING: Final = sa.select(sa.literal(1))

_Begun = Callable[[], None]  # called when the connection is ready and the work begins


class Database:
    """Transactions on one database, from one event loop.

    Every method raises StorageUnavailable when the database cannot be used.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        another: "Callable[[int], Database]",
        patience_s: Sequence[float],
        *,
        keeps_sessions: bool,
    ) -> None:
        """`another` makes one with that many connections. `keeps_sessions`: see `is_behind_pgbouncer`."""
        self.keeps_sessions = keeps_sessions
        self._engine = engine
        self._patience_s = patience_s
        self._another = another
        self._jobs: set[asyncio.Task[Any]] = set()
        self._gate: AbstractAsyncContextManager[object] = nullcontext()
        self._refusal = ""
        self._writing = self._reading = engine
        if self.dialect == "sqlite":
            self._gate = asyncio.Lock()
            self._writing = engine.execution_options(**{WRITES: True})
        elif keeps_sessions:
            self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")

    @classmethod
    async def open(
        cls,
        url: str,
        patience_s: Sequence[float] = PATIENCE_S,
        sealing: Sealing = WITHOUT_KEY,
    ) -> "Database":
        """Connect lazily to `sqlite:///file` or `postgresql://…`.

        A SQLite file is created and set to write-ahead logging at once. Raises ValueError for any
        other URL, StorageUnavailable. `patience_s` are the waits before each retry after a lost
        connection. `sealing` seals and redacts the rows that are written.
        """
        parsed, pgbouncer = addressed(url), is_behind_pgbouncer(url)
        make, connections = partial(sqlite_engine, parsed), SQLITE_CONNECTIONS
        if parsed.drivername == POSTGRESQL:
            # Another replica ends the transactions of a frozen one by this name.
            name = f"kortex-{uuid.uuid4().hex}"
            make = partial(postgresql_engine, parsed, name, pgbouncer=pgbouncer)
            connections = POSTGRESQL_CONNECTIONS

        def database(connections: int) -> Database:
            engine = make(connections)
            redact_with(engine.dialect, sealing.line)
            sealed = engine.execution_options(**{SEALING: sealing})
            return cls(sealed, database, patience_s, keeps_sessions=not pgbouncer)

        # In a thread: making an engine resolves paths and imports the driver.
        opened = await asyncio.to_thread(database, connections)
        if opened.dialect == "sqlite":
            try:
                await _use_wal(opened)
            except BaseException:
                await opened.close()
                raise
        return opened

    async def another(self, connections: int) -> "Database":
        """The same database with its own connections, which the caller closes."""
        return await asyncio.to_thread(self._another, connections)

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    def refuse(self, why: str) -> None:
        """Raise DatabaseReplaced for this reason at every use from now on; "" ends that."""
        self._refusal = why

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end, rolled back by any exception.

        A commit that has begun completes, even when the caller is cancelled.
        """
        self._check_in_place()
        async with _in_time() as begun, self._transaction(begun) as connection:
            yield connection

    @asynccontextmanager
    async def turn_to_write(self) -> AsyncIterator[None]:
        """The turn of a writer with its own connection, such as the workflow engine.

        SQLite polls for its lock, up to 100 ms each time. Without a turn, a writer of this process
        that polls would starve behind the transactions of this database. PostgreSQL needs no turn.
        """
        async with self._gate:
            yield

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection for reads: each statement sees all that was committed before it."""
        self._check_in_place()
        async with _in_time() as begun, self._reading.connect() as connection:
            begun()
            yield connection

    async def transact(self, work: Work[_T], *, again: bool = True) -> _T:
        """Run `work` in one transaction and return its result.

        With `again`, Kortex retries after a lost connection. The lost transaction may have been
        committed, so `work` must be idempotent.
        """

        async def transaction(begun: _Begun) -> _T:
            async with self._transaction(begun) as connection:
                result = await work(connection)
                _check_cancelled()
                return result

        attempt = partial(self._apart, transaction)
        return await (self._patient(attempt) if again else attempt())

    async def fetch(self, work: Work[_T]) -> _T:
        """Run reading `work` and return its result; retried after a lost connection."""

        async def reading(begun: _Begun) -> _T:
            async with self._reading.connect() as connection:
                begun()
                return await work(connection)

        return await self._patient(partial(self._apart, reading))

    async def execute(self, statement: sa.Executable, parameters: Parameters | None = None) -> int:
        """Run one idempotent statement in a transaction of its own. Returns the rows it changed."""

        async def work(connection: AsyncConnection) -> int:
            return (await connection.execute(statement, parameters)).rowcount

        return await self.transact(work)

    async def rows(
        self, statement: sa.Executable, parameters: Parameters | None = None
    ) -> Sequence[Any]:
        """The rows (`sa.Row`) of one reading statement."""

        async def work(connection: AsyncConnection) -> Sequence[sa.Row[Any]]:
            return (await connection.execute(statement, parameters)).all()

        return await self.fetch(work)

    async def first(
        self, statement: sa.Executable, parameters: Parameters | None = None
    ) -> sa.Row[Any] | None:
        """The first row of what a statement finds."""
        return next(iter(await self.rows(statement, parameters)), None)

    async def scalars(
        self, statement: sa.Executable, parameters: Parameters | None = None
    ) -> Sequence[Any]:
        """The first column of each row."""
        return [row[0] for row in await self.rows(statement, parameters)]

    async def scalar(self, statement: sa.Executable, parameters: Parameters | None = None) -> Any:
        """The first column of the first row; None without a row."""
        row = await self.first(statement, parameters)
        return None if row is None else row[0]

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """An INSERT that knows ON CONFLICT on this database."""
        return INSERT[self.dialect](table)

    async def ping(self) -> None:
        """Raises StorageUnavailable unless a statement can be run now."""

        async def ask(_begun: _Begun) -> None:
            async with self._reading.connect() as connection:
                await connection.execute(NOTHING)

        await self._apart(ask)

    async def now(self) -> datetime:
        found: datetime = await self.scalar(NOW)
        return found

    async def schema_head(self) -> str | None:
        """The revision of the tables; None for an empty database."""

        async def ask(connection: AsyncConnection) -> str | None:
            if not await connection.run_sync(lambda c: sa.inspect(c).has_table("alembic_version")):
                return None
            found: str | None = await connection.scalar(
                sa.select(sa.column("version_num")).select_from(sa.table("alembic_version"))
            )
            return found

        return await self.fetch(ask)

    async def close(self) -> None:
        """Wait for running transactions, at most `CLOSE_S`, and close the connections."""
        if self._jobs:
            _, late = await asyncio.wait(self._jobs, timeout=CLOSE_S)
            for job in late:
                job.cancel()
            if late:
                await asyncio.wait(late, timeout=LEAVE_S)
        await self._engine.dispose()

    @asynccontextmanager
    async def _transaction(self, begun: _Begun) -> AsyncIterator[AsyncConnection]:
        async with self._gate, self._writing.connect() as connection:
            await connection.begin()
            begun()
            yield connection
            await _commit(connection)

    async def _apart(self, run: Callable[[_Begun], Awaitable[_T]]) -> _T:
        """Run it in its own task. A caller that gives up leaves, also when the driver needs longer."""
        self._check_in_place()
        async with _in_time() as begun:
            job = asyncio.ensure_future(run(begun))  # noqa: TID251 - left to `close`
            self._jobs.add(job)
            job.add_done_callback(self._ended)
            try:
                await asyncio.wait({job})
            except asyncio.CancelledError:
                job.cancel()
                await asyncio.wait({job}, timeout=LEAVE_S)
                raise
            if job.cancelled():
                raise StorageUnavailable("the database is being closed; nothing was kept")
            return job.result()

    def _check_in_place(self) -> None:
        if self._refusal:
            raise DatabaseReplaced(self._refusal)

    def _ended(self, job: asyncio.Task[Any]) -> None:
        self._jobs.discard(job)
        if not job.cancelled():
            job.exception()  # the caller may have left

    async def _patient(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        for wait_s in self._patience_s:
            try:
                return await attempt()
            except ConnectionLost:
                await asyncio.sleep(wait_s)
        return await attempt()


async def _use_wal(database: Database) -> None:
    # The switch ignores the busy timeout: two processes on a fresh file can collide.
    for _ in range(_WAL_TRIES):
        try:
            async with database.read() as connection:
                await connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            return
        except StorageUnavailable as error:
            if "locked" not in str(error):
                raise
            await asyncio.sleep(_WAL_RETRY_S)
    raise StorageUnavailable("the database file is locked by another process")


@asynccontextmanager
async def _in_time() -> AsyncIterator[_Begun]:
    """Ends the body when it waits too long to begin, or takes too long after it called what it got."""
    loop, is_begun = asyncio.get_running_loop(), False

    def begun() -> None:
        nonlocal is_begun
        deadline.reschedule(loop.time() + TRANSACTION_TIMEOUT_S)  # raises when the caller has left
        is_begun = True

    with storage_errors():
        try:
            async with asyncio.timeout(QUEUE_TIMEOUT_S) as deadline:
                yield begun
        except TimeoutError as error:
            if is_begun:
                raise
            waited = f"{QUEUE_TIMEOUT_S:g} s"
            raise StorageUnavailable(
                f"the database was too busy for {waited}; nothing was started"
            ) from error


async def _commit(connection: AsyncConnection) -> None:
    commit = asyncio.ensure_future(connection.commit())  # noqa: TID251 - awaited below
    try:
        await asyncio.shield(commit)
    except asyncio.CancelledError:
        await asyncio.wait({commit}, timeout=CLOSE_S)
        raise


def _check_cancelled() -> None:
    # A library may have swallowed the cancellation: wait_for of Python 3.11 can.
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
