"""The connection of one thread, and how work that awaits nothing else runs on it; SQLite's, kept."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from bot.store.dialect import Connection, Parameters, Work
from bot.store.prepared import Compiled, Driver, Statements, as_sqlalchemys

_T = TypeVar("_T")


class InThread:
    """A connection whose coroutines never wait, so that its work needs no event loop."""

    def __init__(self, connection: sa.Connection, driver: Driver, statements: Statements) -> None:
        self._connection = connection
        self._driver = driver
        self._statements = statements
        # Whoever listens to SQLAlchemy's statements is to hear of all.
        self._is_heard = bool(connection.dispatch.before_cursor_execute)

    @property
    def dialect(self) -> sa.Dialect:
        """The dialect statements are compiled for."""
        return self._connection.dialect

    @property
    def sync_connection(self) -> sa.Connection:
        """The connection it stands for."""
        return self._connection

    async def execute(
        self, statement: sa.Executable, parameters: Parameters | None = None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        """Run one statement."""
        return self._run(statement, parameters)

    @asynccontextmanager
    async def begin_nested(self) -> AsyncIterator[None]:
        """A savepoint; an exception undoes what was done since."""
        with self._connection.begin_nested():
            yield

    async def scalar(self, statement: sa.Executable) -> Any:
        """The first column of the first row; None when there is none."""
        return self._run(statement, None).scalar()

    async def scalars(self, statement: sa.Executable) -> sa.ScalarResult[Any]:
        """The first column of every row."""
        return self._run(statement, None).scalars()

    def _run(
        self, statement: sa.Executable, parameters: Parameters | None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        prepared = self._prepared(statement)
        if prepared is not None:
            answer = prepared.run(self._driver, parameters)
            if answer is not None:
                # It has of a cursor's result what the protocol's users ask for: rows, and their count.
                return cast("sa.CursorResult[*tuple[Any, ...]]", answer)
        return self._connection.execute(statement, parameters)

    def _prepared(self, statement: sa.Executable) -> Compiled | None:
        return None if self._is_heard else self._statements.of(statement)


class Kept:
    """A connection of that engine, opened when it is first needed. For one thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._statements = Statements(engine.dialect)
        self._connection: sa.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[InThread]:
        """Every statement sees what is committed when it starts."""
        connection, driver = self._opened()
        try:
            yield InThread(connection, driver, self._statements)
        finally:
            if connection.in_transaction():  # as SQLAlchemy sees it
                connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[InThread]:
        """One transaction: committed at the end, rolled back by any exception."""
        connection, driver = self._opened()
        try:
            # The driver's own: SQLAlchemy opens one of its own where it is asked for a statement.
            _driven(connection, driver, lambda: driver.cursor().execute("BEGIN IMMEDIATE"))
            yield InThread(connection, driver, self._statements)
            if connection.in_transaction():
                connection.commit()
            else:
                _driven(connection, driver, driver.commit)
        except BaseException:
            self._undo(connection, driver)
            raise

    def _undo(self, connection: sa.Connection, driver: sqlite3.Connection) -> None:
        try:
            if connection.get_transaction() is not None:  # also one whose commit failed
                connection.rollback()
            driver.rollback()
        finally:
            if connection.invalidated or driver.in_transaction:
                self.close()

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _opened(self) -> tuple[sa.Connection, sqlite3.Connection]:
        if self._connection is None:
            self._connection = self._engine.connect()
        driver = self._connection.connection.dbapi_connection
        return self._connection, cast("sqlite3.Connection", driver)


def _driven(
    connection: sa.Connection, driver: sqlite3.Connection, work: Callable[[], object]
) -> None:
    try:
        work()
    except sqlite3.Error as error:
        raise as_sqlalchemys(error, driver, connection.dialect) from error


def finished(work: Work[_T], connection: Connection) -> _T:
    """What `work` returns, without an event loop."""
    running = work(connection)
    try:
        running.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    running.close()
    raise RuntimeError("a transaction may await nothing but its connection")
