"""PostgreSQL transactions that run whole in a thread, each on the connection that its thread keeps.

Who writes the audit trail holds its lock until the commit: between two of its statements such a
transaction waits for the server alone, not for an event loop that has answers to show (docs/adr/0012).
Transactions do not share: each has the locks of its own rows.
"""

import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import psycopg
import sqlalchemy as sa
from psycopg import generators, waiting

from bot.ports.failures import StorageUnavailable
from bot.store.dialect import ConnectionLost, Parameters, Work
from bot.store.in_thread import InThread
from bot.store.prepared import Driver, Statements, as_sqlalchemys
from bot.store.thread_jobs import GivenUp, Job, Limits, Threads, alone, closed

if TYPE_CHECKING:
    from psycopg.pq.abc import PGcancelConn

_T = TypeVar("_T")
# A server that is frozen keeps nobody who wants to end.
CLOSE_S = 10.0
# Some threads work rarely, and what lies between forgets a silent connection without a word: Azure's
# load balancers after 240 s, AWS's after 350 (https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html).
KEPT_ALIVE: Final = {"keepalives_idle": 60, "keepalives_interval": 15, "keepalives_count": 3}
# How long a server is asked to end a statement. Its connection is gone anyway.
_ASKED_FOR_S = 5.0
_Driver = psycopg.Connection[tuple[Any, ...]]


def engine_of(url: sa.URL, name: str, connect_timeout_s: float, idle_s: float = 0.0) -> sa.Engine:
    """Synchronous, of a `postgresql+psycopg://…` address.

    `name` is that of its connections; the server ends one that stands still for `idle_s` inside a
    transaction, or none (0). The address's own options come first.
    """
    alive = {option: s for option, s in KEPT_ALIVE.items() if option not in url.query}
    return sa.create_engine(
        url,
        poolclass=sa.NullPool,  # the threads keep them
        hide_parameters=True,
        execution_options={"preserve_rowcount": True},  # of an INSERT too; its cursor forgets it
        connect_args={
            "connect_timeout": round(connect_timeout_s),
            **alive,
            "application_name": name,
            "options": f"-c idle_in_transaction_session_timeout={idle_s * 1000:.0f}",
        },
    )


class PostgresThreads:
    """`writers` threads for transactions and `readers` beside them. Any event loop may ask."""

    def __init__(self, engine: sa.Engine, writers: int, readers: int) -> None:
        self._engine = engine
        age = _Age()
        reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._written = [_Kept(engine, age, writes=True) for _ in range(writers)]
        self._read = [_Kept(reading, age, writes=False) for _ in range(readers)]
        self._writing = Threads("postgres-writer", [kept.do for kept in self._written])
        self._reading = Threads("postgres-reader", [kept.do for kept in self._read])

    async def transact(self, work: Work[_T], limits: Limits) -> _T:
        """Run `work` in one transaction: committed at the end, rolled back by any exception.

        Cancelled or too late while it waits, it is not run; while it runs, its connection is cut
        and the server asked to end it, unless its commit has begun. Raises TimeoutError,
        ConnectionLost, and StorageUnavailable when it was not begun in time.
        """
        return await self._outcome(self._writing, self._written, Job(work, limits))

    async def fetch(self, work: Work[_T], limits: Limits) -> _T:
        """Run reading `work`; every statement sees what is committed when it starts."""
        return await self._outcome(self._reading, self._read, Job(work, limits))

    async def close(self) -> None:
        """Wait for what still runs, not for long, and give the connections back."""
        await closed(self._close)

    def _close(self) -> None:
        late = threading.Timer(CLOSE_S, self._leave)
        late.daemon = True
        late.start()
        self._writing.close()
        self._reading.close()
        late.cancel()
        for kept in (*self._written, *self._read):
            kept.close()
        self._engine.dispose()

    def _leave(self) -> None:
        for kept in (*self._written, *self._read):
            kept.leave()

    async def _outcome(
        self, threads: Threads[Job[Any]], kept: Sequence["_Kept"], job: Job[_T]
    ) -> _T:
        threads.put(job)
        try:
            return await job.outcome()
        finally:
            if job.given_up:
                for each in kept:
                    each.end(job)


class _InThread(InThread):
    """Sends what may be sent together (libpq's pipeline mode) until it is asked for anything else.

    https://www.postgresql.org/docs/current/libpq-pipeline-mode.html: the server runs them in turn,
    each with what is committed when it starts. So whoever waited for the trail's lock has the newest
    row with it, and the new ones go out with the COMMIT: the lock waits for this thread once.
    """

    def __init__(
        self, connection: sa.Connection, driver: _Driver, statements: Statements, ends: ExitStack
    ) -> None:
        super().__init__(connection, cast("Driver", driver), statements)
        self._psycopg = driver
        self._ends = ends
        self._is_sending = False

    def send(self, statement: sa.Executable, parameters: Parameters | None) -> bool:
        """See `bot.store.dialect.Sending`."""
        prepared = self._prepared(statement)
        if prepared is None:
            return False
        if not self._is_sending:
            self._ends.enter_context(self._psycopg.pipeline())
            self._is_sending = True
        return prepared.send(self._driver, parameters)

    def _run(
        self, statement: sa.Executable, parameters: Parameters | None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        if self._is_sending:
            prepared = self._prepared(statement)
            if prepared is not None and prepared.has_rows:
                answer = prepared.run(self._driver, parameters)
                if answer is not None:
                    return cast("sa.CursorResult[*tuple[Any, ...]]", answer)
            self._stop_sending()
        return super()._run(statement, parameters)

    @asynccontextmanager
    async def begin_nested(self) -> AsyncIterator[None]:
        """A savepoint; an exception undoes what was done since."""
        self._stop_sending()
        async with super().begin_nested():
            yield

    def _stop_sending(self) -> None:
        """Hear of all that was sent: of how many rows were changed, only an answer tells."""
        self._is_sending = False
        self._ends.close()


class _Age:
    """Of the connections of one process: when one was lost, those that are as old were too."""

    def __init__(self) -> None:
        self.now = 0


class _Kept:
    """The connection of one thread, opened when it is first needed, and what it is at."""

    def __init__(self, engine: sa.Engine, age: _Age, *, writes: bool) -> None:
        self._engine = engine
        self._age = age
        self._writes = writes
        self._opened_at = 0
        self._statements = Statements(engine.dialect)
        self._connection: sa.Connection | None = None
        self._lock = threading.Lock()
        self._job: Job[Any] | None = None
        self._driver: _Driver | None = None
        self._cut = False
        self._leaves = False

    def do(self, job: Job[Any]) -> None:
        """Run it unless nobody waits for it any more, and tell its caller."""
        if not job.given_up:
            alone(job, partial(self._running, job))

    def end(self, job: Job[Any]) -> None:
        """From another thread: its connection is lost to it at once, if it is at that job."""
        with self._lock:
            if self._job is job:
                self._lose()

    def leave(self) -> None:
        """From another thread: whatever it is at is lost to it, and nothing else is begun."""
        with self._lock:
            self._leaves = True
            self._lose()

    def _lose(self) -> None:
        if self._driver is not None and not self._cut:
            self._cut = True
            with suppress(OSError, psycopg.Error):
                stop = self._driver.pgconn.cancel_conn()
                # To a server that waits for a row's lock the end of a connection is no reason to stop.
                threading.Thread(target=_asked_to_stop, args=(stop,), daemon=True).start()
            with suppress(OSError, psycopg.Error), _wire_of(self._driver) as wire:
                wire.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()  # nobody gets it next: it is not to be rolled back first
            connection.close()

    @contextmanager
    def _running(self, job: Job[Any]) -> Iterator[InThread]:
        self._check(job)
        connection, driver = self._opened()
        with self._lock:
            self._job, self._driver, self._cut = job, driver, False
        try:
            self._check(job)  # again: nobody can cut a connection that is being opened
            with (
                _as_sqlalchemys(connection, driver),
                ExitStack() as ends,
                self._begun(connection),
            ):
                yield _InThread(connection, driver, self._statements, ends)
        finally:
            self._undone(connection, driver)  # which may wait for the server, and be cut
            with self._lock:
                self._job = self._driver = None
            if self._cut or driver.closed:
                self._age.now += not self._cut
                self.close()

    def _check(self, job: Job[Any]) -> None:
        if job.given_up:
            raise GivenUp
        if self._leaves:
            raise StorageUnavailable("the database is being closed; nothing was begun")

    def _begun(self, connection: sa.Connection) -> AbstractContextManager[object]:
        return connection.begin() if self._writes else nullcontext()

    def _undone(self, connection: sa.Connection, driver: _Driver) -> None:
        with suppress(psycopg.Error, sa.exc.DBAPIError):
            if connection.get_transaction() is not None:  # as SQLAlchemy sees what only reads
                connection.rollback()
            driver.rollback()  # a COMMIT sent after what was refused is not run

    def _opened(self) -> tuple[sa.Connection, _Driver]:
        if self._opened_at != self._age.now:
            self.close()
        if self._connection is None:
            self._opened_at = self._age.now
            try:
                self._connection = self._engine.connect()
            except sa.exc.DBAPIError as error:
                said = " ".join(str(error.orig).split())
                raise ConnectionLost(f"the database cannot be reached: {said}") from error
        driver = self._connection.connection.dbapi_connection
        return self._connection, cast("_Driver", driver)


@contextmanager
def _as_sqlalchemys(connection: sa.Connection, driver: _Driver) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise as_sqlalchemys(error, driver, connection.dialect) from error


def _wire_of(driver: _Driver) -> socket.socket:
    """A second handle, for it is the driver that closes its own."""
    return socket.socket(fileno=os.dup(driver.fileno()))


def _asked_to_stop(stop: "PGcancelConn") -> None:
    # Not libpq's older `PQcancel`: while a frozen server is asked, it holds the interpreter's lock,
    # and with it every thread of this process.
    with suppress(psycopg.Error, OSError):
        stop.start()
        waiting.wait_conn(generators.cancel(stop), interval=0.1, timeout=_ASKED_FOR_S)
