"""SQLite transactions that run whole in a thread: one change of threads there and one back.

Between two statements the one writer of the file waits for nobody, however busy the event loop is.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, TypeVar

import sqlalchemy as sa

from bot.store.connection import Connection, Parameters, Work

_T = TypeVar("_T")


class SqliteThreads:
    """One thread that writes and `readers` beside it; whoever comes first is served first."""

    def __init__(self, writer: sa.Engine, reader: sa.Engine, readers: int) -> None:
        self._writer, self._reader = writer, reader
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="sqlite-writer")
        self._reading = ThreadPoolExecutor(readers, thread_name_prefix="sqlite-reader")

    async def transact(self, work: Work[_T]) -> _T:
        """Run `work` in one transaction: committed at the end, rolled back by any exception.

        Cancelled while it waits, it is not run. Cancelled while it runs, it ends by itself soon and is
        rolled back, unless its commit has begun.
        """
        return await _run(self._writing, self._writer.begin, work)

    async def fetch(self, work: Work[_T]) -> _T:
        """Run reading `work`; every statement sees what is committed when it starts."""
        return await _run(self._reading, self._reader.connect, work)

    async def close(self) -> None:
        """Wait for what still runs and give the connections back."""
        # Not the loop's default threads: whoever stops last may have ended those.
        closer = ThreadPoolExecutor(1)
        try:
            await asyncio.get_running_loop().run_in_executor(closer, self._close)
        finally:
            closer.shutdown(wait=False)

    def _close(self) -> None:
        for threads, engine in ((self._writing, self._writer), (self._reading, self._reader)):
            threads.shutdown()
            engine.dispose()


class InThread:
    """A connection whose coroutines never wait, so that its work needs no event loop."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> sa.Dialect:
        """SQLite's."""
        return self._connection.dialect

    @property
    def sync_connection(self) -> sa.Connection:
        """The connection it stands for."""
        return self._connection

    async def execute(
        self, statement: sa.Executable, parameters: Parameters | None = None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        """Run one statement."""
        return self._connection.execute(statement, parameters)

    @asynccontextmanager
    async def begin_nested(self) -> AsyncIterator[None]:
        """A savepoint; an exception undoes what was done since."""
        with self._connection.begin_nested():
            yield

    async def scalar(self, statement: sa.Executable) -> Any:
        """The first column of the first row; None when there is none."""
        return self._connection.scalar(statement)

    async def scalars(self, statement: sa.Executable) -> sa.ScalarResult[Any]:
        """The first column of every row."""
        return self._connection.scalars(statement)


class _GivenUp(Exception):
    """Nobody waits for the transaction any more. Nobody sees this either."""


async def _run(
    threads: Executor, opened: Callable[[], AbstractContextManager[sa.Connection]], work: Work[_T]
) -> _T:
    given_up = threading.Event()

    def run() -> _T:
        with opened() as connection:
            result = _finished(work, InThread(connection))
            if given_up.is_set():
                raise _GivenUp
            return result

    try:
        return await asyncio.get_running_loop().run_in_executor(threads, run)
    except asyncio.CancelledError:
        given_up.set()
        raise


def _finished(work: Work[_T], connection: Connection) -> _T:
    running = work(connection)
    try:
        running.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    running.close()
    raise RuntimeError("a transaction may await nothing but its connection")
