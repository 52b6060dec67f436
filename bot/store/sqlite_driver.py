"""aiosqlite with one trip to its thread per statement; as it comes, it makes four.

A trip costs more than most statements: two wake-ups and a change of threads. What a statement
returns is read in the trip that runs it.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Self

import aiosqlite
import sqlalchemy as sa

from bot.store.write_gate import GatedConnection


def connector(
    url: sa.URL, busy_timeout_s: float
) -> Callable[[], Coroutine[None, None, "OneTripConnection"]]:
    """What opens connections to the file of that URL. Resolves paths, so not for the event loop.

    `busy_timeout_s` is how long a connection waits for a lock.
    """
    arguments, options = url.get_dialect()().create_connect_args(url)
    driver_connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    ours = {"timeout": busy_timeout_s, "factory": GatedConnection}
    open_file = partial(driver_connect, *arguments, **{**options, **ours})

    async def connect() -> OneTripConnection:
        connection = OneTripConnection(open_file, iter_chunk_size=64)
        connection._thread.daemon = True  # noqa: SLF001 - as SQLAlchemy does to those it makes
        await connection
        return connection

    return connect


class OneTripConnection(aiosqlite.Connection):
    """What SQLAlchemy's dialect uses of a connection."""

    _abandoned = False

    def cursor(self) -> "OneTripCursor":  # type: ignore[override]
        """A cursor; nothing is run yet."""
        return OneTripCursor(self)

    async def rollback(self) -> None:
        """Roll back what is open; without a trip when nothing can be."""
        if self._abandoned or self.in_transaction:
            await super().rollback()
            self._abandoned = False  # whatever was left running was ahead of this in the queue

    async def trip(self, work: Callable[..., object], *arguments: object) -> None:
        """Run `work` in the connection's thread. A cancelled caller leaves it running there."""
        try:
            await self._execute(work, *arguments)  # type: ignore[no-untyped-call]
        except asyncio.CancelledError:
            self._abandoned = True
            raise

    def driver_cursor(self) -> sqlite3.Cursor:
        """A cursor of the driver, for use in the connection's thread."""
        return self._conn.cursor()


class OneTripCursor:
    """One statement and all its rows."""

    def __init__(self, connection: OneTripConnection) -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Self:
        """Run one statement and read what it returns."""
        await self._connection.trip(self._run, "execute", sql, parameters)
        return self

    async def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> Self:
        """Run one statement for each row of parameters."""
        await self._connection.trip(self._run, "executemany", sql, parameters)
        return self

    async def fetchall(self) -> Sequence[Any]:
        """The rows, once."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """Nothing is open between statements."""

    def _run(self, run: str, sql: str, parameters: object) -> None:
        cursor = self._connection.driver_cursor()
        try:
            getattr(cursor, run)(sql, parameters)
            self.description = cursor.description
            self._rows = cursor.fetchall() if cursor.description else []
            self.rowcount, self.lastrowid = cursor.rowcount, cursor.lastrowid
        finally:
            cursor.close()
