"""A connection of a database that a test keeps across awaits: each of its statements runs in a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.engine.result import SimpleResultMetaData

from bot.store import database
from bot.store.database import Database
from bot.store.dialect import Connection, Parameters, Work, storage_errors
from bot.store.prepared import Answer
from bot.store.thread_jobs import Limits

_T = TypeVar("_T")
_Job = Callable[[sa.Connection], object]


class _Undone(Exception):
    """The test's block raised."""


_OPEN = _Undone()


class HeldConnection:
    """Runs what it is asked for in the thread that has the connection."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.asked: SimpleQueue[tuple[_Job, asyncio.Future[Any]] | BaseException | None] = (
            SimpleQueue()
        )
        self.ready = asyncio.Event()
        self._done: list[_Job] = []
        self._end: BaseException | None = _OPEN

    async def run_sync(self, job: Callable[..., _T], *arguments: object) -> _T:
        """What `job` returns when it is called with SQLAlchemy's connection."""
        answer: asyncio.Future[_T] = self.loop.create_future()
        self.asked.put((lambda connection: job(connection, *arguments), answer))
        return await answer

    async def execute(
        self, statement: sa.Executable, parameters: Parameters | None = None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        """Run one statement."""
        return await self.run_sync(lambda plain: _read(plain.execute(statement, parameters)))

    async def exec_driver_sql(self, sql: str) -> sa.CursorResult[*tuple[Any, ...]]:
        """Run that text as it is."""
        return await self.run_sync(lambda plain: _read(plain.exec_driver_sql(sql)))

    async def scalar(self, statement: sa.Executable) -> Any:
        """The first column of the first row; None when there is none."""
        return await self.run_sync(lambda plain: plain.scalar(statement))

    async def scalars(self, statement: sa.Executable) -> sa.ScalarResult[Any]:
        """The first column of every row."""
        return (await self.execute(statement)).scalars()

    @property
    def sync_connection(self) -> sa.Connection:
        """What it stands for."""
        return self._plain.sync_connection

    @property
    def dialect(self) -> sa.Dialect:
        """Which database it is, by name."""
        return self._plain.dialect

    @asynccontextmanager
    async def begin_nested(self) -> AsyncIterator[None]:
        """A savepoint; an exception undoes what was done since."""
        savepoint = await self.run_sync(lambda plain: plain.begin_nested())
        try:
            yield
        except BaseException:
            await self.run_sync(lambda _: savepoint.rollback())
            raise
        await self.run_sync(lambda _: savepoint.commit())

    async def serve(self, connection: Connection) -> None:
        """In the thread, inside the transaction: all that is asked for until it ends."""
        self._plain = connection
        # On SQLite it may share its transaction with one that fails, and is then run again.
        for job in self._done:
            job(connection.sync_connection)
        self.loop.call_soon_threadsafe(self.ready.set)
        while self._end is _OPEN:
            self._end = self._next(connection.sync_connection)
        if self._end is not None:
            raise self._end

    def _next(self, connection: sa.Connection) -> BaseException | None:
        if not isinstance(asked := self.asked.get(), tuple):
            return asked
        job, answer = asked
        try:
            with storage_errors():
                found = job(connection)
        except Exception as error:  # noqa: BLE001 - raised where it was asked for
            self.loop.call_soon_threadsafe(_settle, answer, None, error)
        else:
            self._done.append(job)
            self.loop.call_soon_threadsafe(_settle, answer, found, None)
        return _OPEN


def _read(
    result: sa.CursorResult[*tuple[Any, ...]],
) -> sa.CursorResult[*tuple[Any, ...]]:
    """With its rows, which nobody else may ask the driver for."""
    if not result.returns_rows:
        return result
    columns = SimpleResultMetaData(list(result.keys()))
    answer = Answer(columns, result.all(), result.rowcount)
    return cast("sa.CursorResult[*tuple[Any, ...]]", answer)


def _settle(answer: asyncio.Future[Any], found: object, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)


@asynccontextmanager
async def _held(
    run: Callable[[Work[None]], Coroutine[Any, Any, None]],
) -> AsyncIterator[HeldConnection]:
    connection = HeldConnection()
    serving = asyncio.get_running_loop().create_task(run(connection.serve))
    serving.add_done_callback(lambda _: connection.ready.set())
    try:
        await connection.ready.wait()
        if serving.done():
            serving.result()
        with storage_errors():
            async with asyncio.timeout(database.TRANSACTION_TIMEOUT_S):
                yield connection
    except BaseException:
        connection.asked.put(_Undone())
        serving.cancel()
        await asyncio.wait({serving})
        raise
    connection.asked.put(None)
    with storage_errors():
        await serving


@asynccontextmanager
async def writing(of: Database) -> AsyncIterator[HeldConnection]:
    """One transaction: committed at the end, rolled back by any exception."""
    async with _held(lambda work: of.transact(work, again=False)) as connection:
        yield connection


@asynccontextmanager
async def reading(of: Database) -> AsyncIterator[HeldConnection]:
    """Every statement sees what is committed when it starts."""
    limits = Limits(60.0, 60.0)
    async with _held(lambda work: of._threads.fetch(work, limits)) as connection:
        yield connection
