"""Differences of SQLite and PostgreSQL: the clock, the upsert, locks, and errors.

The errors of their drivers become ours:

StorageUnavailable (bot.ports) └── ConnectionLost the connection was lost; idempotent work may be
retried

Broken statements and violated constraints are bugs and pass unchanged.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from bot.ports.failures import StorageUnavailable
from bot.store.columns import EngineText, Instant

_T = TypeVar("_T")
Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]

_BUGS = (
    sa.exc.IntegrityError,
    sa.exc.ProgrammingError,
    sa.exc.DataError,
    sa.exc.NotSupportedError,
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html: connection exceptions, shutdown
# and start-up, too many connections, ended because it was idle inside a transaction; serialization
# failure and deadlock roll back and may rerun.
_TRANSIENT = ("08", "57P01", "57P02", "57P03", "53300", "25P03", "40001", "40P01")


DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
_AUDIT_LOCK = 0x6B6F72746578  # "kortex": the advisory lock's number; any fixed one does
_BUDGET_LOCK = 0x6B6F72746579
_ALERT_LOCK = 0x6B6F7274657A


# A statement's row limit, given at execution.
MOST: Final = sa.bindparam("most", type_=sa.Integer())

# Runs inside a transaction or a read of `bot.store.database`; may be called again after a lost connection.
Work = Callable[[AsyncConnection], Awaitable[_T]]


class _DatabaseNow(FunctionElement[datetime]):
    type = Instant()
    inherit_cache = True


@compiles(_DatabaseNow, "sqlite")
def _sqlite_now(element: _DatabaseNow, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ARG001 - SQLAlchemy's signature
    # SQLite's clock has milliseconds; the rounding undoes what the Julian day loses as a double.
    return "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)"


@compiles(_DatabaseNow, "postgresql")
def _postgresql_now(element: _DatabaseNow, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ARG001 - SQLAlchemy's signature
    # Not now(): that is when the transaction began, which may be before a wait for a row's lock.
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


class _AsEngines(FunctionElement[str]):
    type = EngineText()
    inherit_cache = True


@compiles(_AsEngines, "sqlite")
def _sqlite_as_engines(element: _AsEngines, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(_AsEngines, "postgresql")
def _postgresql_as_engines(element: _AsEngines, compiler: SQLCompiler, **kw: Any) -> str:
    return f'(({compiler.process(element.clauses, **kw)}) COLLATE "default")'


def as_engines(text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Text of ours as the workflow engine's tables order theirs: it is found by their indexes."""
    return _AsEngines(text)


def now() -> sa.ColumnElement[datetime]:
    """The database's clock when the row is looked at, UTC; SQLite's has milliseconds."""
    return _DatabaseNow()


def _now_us() -> sa.ColumnElement[int]:
    return sa.type_coerce(now(), sa.BigInteger())


def _once(value: sa.ColumnElement[int]) -> sa.ColumnElement[datetime]:
    # A subquery is evaluated once for the statement: PostgreSQL uses no index for a volatile clock.
    return sa.type_coerce(sa.select(value).scalar_subquery(), Instant())


def seconds_ago(seconds: float) -> sa.ColumnElement[datetime]:
    """An earlier instant by the database's clock, fixed for the statement."""
    return _once(_now_us() - sa.literal(round(seconds * 1_000_000), sa.BigInteger()))


def ago(name: str) -> sa.ColumnElement[datetime]:
    """As `seconds_ago`, of as many microseconds as are given by that name."""
    return _once(_now_us() - sa.bindparam(name, type_=sa.BigInteger()))


def today() -> sa.ColumnElement[datetime]:
    return _start_of(DAY_US)


def this_hour() -> sa.ColumnElement[datetime]:
    """The full hour UTC by the database's clock, fixed for the statement."""
    return _start_of(HOUR_US)


def _start_of(span_us: int) -> sa.ColumnElement[datetime]:
    span = sa.literal(span_us, sa.BigInteger())
    return _once((_now_us() // span) * span)


# An INSERT that knows ON CONFLICT, by the name of the dialect.
INSERT: Final[Mapping[str, Callable[[sa.Table], sqlite.Insert | postgresql.Insert]]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


def insert_into(connection: AsyncConnection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    return INSERT[connection.dialect.name](table)


async def lock_budget(connection: AsyncConnection) -> None:
    """One reservation at a time, until the transaction ends; see `lock_audit`."""
    if connection.dialect.name == "postgresql":
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_BUDGET_LOCK)))


async def lock_alerts(connection: AsyncConnection) -> None:
    """One request's alerts are filed at a time, until the transaction ends; see `lock_audit`."""
    if connection.dialect.name == "postgresql":
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ALERT_LOCK)))


async def lock_order(connection: AsyncConnection, digest: str) -> None:
    """One transaction at a time proposes or sends orders of that digest; see `lock_audit`."""
    if connection.dialect.name == "postgresql":
        # 60 bits of it: another order on the same number would only wait its turn.
        number = sa.literal(int(digest[:15], 16), sa.BigInteger())
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))


async def lock_audit(connection: AsyncConnection) -> None:
    """One writer of the audit log at a time, until the transaction ends.

    SQLite needs none: a write transaction is alone there already.
    """
    if connection.dialect.name == "postgresql":
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_AUDIT_LOCK)))


class ConnectionLost(StorageUnavailable):
    """The connection went away, or the server gave the transaction up."""


@contextmanager
def storage_errors() -> Iterator[None]:
    """Raises StorageUnavailable or ConnectionLost instead of what the database or its driver raised."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if isinstance(error, _BUGS):
            raise
        raise _named(error) from error
    except sqlite3.Error as error:  # from BEGIN, which SQLAlchemy does not send
        raise StorageUnavailable(f"the database failed: {error}") from error
    except sa.exc.StatementError as error:
        if isinstance(error.orig, StorageUnavailable):
            raise error.orig from error  # a column could not take its value
        raise
    except TimeoutError as error:
        raise StorageUnavailable("the database did not answer in time") from error
    except sa.exc.TimeoutError as error:
        raise StorageUnavailable(
            "every database connection is busy; nothing was started"
        ) from error
    except OSError as error:
        raise ConnectionLost(f"the database cannot be reached: {error}") from error


def _named(error: sa.exc.DBAPIError) -> StorageUnavailable:
    reason = " ".join(str(error.orig).split())
    # psycopg gives errors of the server a code, and none to those of the connection. sqlite3 has none.
    state = getattr(error.orig, "sqlstate", "")
    if state is None:
        return ConnectionLost(f"the database cannot be reached: {reason}")
    if error.connection_invalidated or state.startswith(_TRANSIENT):
        return ConnectionLost(f"the database failed: {reason}")
    return StorageUnavailable(f"the database failed: {reason}")
