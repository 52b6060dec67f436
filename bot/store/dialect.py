"""What SQLite and PostgreSQL say differently: the clock, the upsert, the lock of the trail."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from bot.store.columns import Instant
from bot.store.connection import Connection

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
_AUDIT_LOCK = 0x6B6F72746578  # "kortex": the advisory lock's number; any fixed one does
_BUDGET_LOCK = 0x6B6F72746579


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


def today() -> sa.ColumnElement[datetime]:
    """Midnight UTC by the database's clock, fixed for the statement."""
    return _start_of(DAY_US)


def this_hour() -> sa.ColumnElement[datetime]:
    """The full hour UTC by the database's clock, fixed for the statement."""
    return _start_of(HOUR_US)


def _start_of(span_us: int) -> sa.ColumnElement[datetime]:
    span = sa.literal(span_us, sa.BigInteger())
    return _once((_now_us() // span) * span)


def insert_into(connection: Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that knows ON CONFLICT."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


async def lock_budget(connection: Connection) -> None:
    """One reservation at a time, until the transaction ends; see `lock_audit`."""
    if connection.dialect.name == "postgresql":
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_BUDGET_LOCK)))


async def lock_audit(connection: Connection) -> None:
    """One writer of the trail at a time, until the transaction ends.

    SQLite needs none: a write transaction is alone there already.
    """
    if connection.dialect.name == "postgresql":
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_AUDIT_LOCK)))
