"""SQLAlchemy's engines for SQLite and PostgreSQL: pools, timeouts and how a transaction begins."""

import sqlite3
from contextlib import suppress
from typing import Any, Final

import aiosqlite
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

# The workflow engine has its own connections to the file. Its writes are short.
SQLITE_BUSY_S = 30.0
CONNECT_TIMEOUT_S = 5.0
POOL_TIMEOUT_S: Final = 60.0
STATEMENT_TIMEOUT_S: Final = 15.0  # for PostgreSQL, should the client fail to cancel
LOCK_TIMEOUT_S: Final = 10.0
# PostgreSQL ends the transaction of a process that froze or lost its machine, and frees its locks. A
# successor then waits little longer than the lease.
IDLE_IN_TRANSACTION_S = 6.0
# Load balancers drop silent connections: Azure's after 240 s, AWS's after 350 s
# (https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html).
KEPT_ALIVE: Final = {"keepalives_idle": 60, "keepalives_interval": 15, "keepalives_count": 3}

WRITES: Final = "kortex_writes"  # the execution option of SQLite's writing transactions

_BEGINS: Final = "kortex_begins"  # the mark of a connection with an unfinished BEGIN


def sqlite_engine(url: sa.URL, connections: int) -> AsyncEngine:
    """For a `sqlite+aiosqlite` address. A transaction begins only with the option `WRITES`."""
    engine = create_async_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_use_lifo=True,  # the connection used last has its pages in memory
        pool_timeout=POOL_TIMEOUT_S,
        hide_parameters=True,
        connect_args={"timeout": SQLITE_BUSY_S},
        skip_autocommit_rollback=True,  # a read has no transaction; see `_roll_back_writes`
    )
    begin_immediately(engine.sync_engine)
    _roll_back_writes(engine.sync_engine)

    # A cancelled caller leaves its statement running in the driver's thread, and SQLite keeps the locks of
    # a connection that is closed with an open statement.
    @sa.event.listens_for(engine.sync_engine, "invalidate")
    def undo(connection: sa.AdaptedConnection, record: object, error: object) -> None:  # noqa: ARG001 - SQLAlchemy's signature
        connection.run_async(_undone)

    return engine


def _roll_back_writes(engine: sa.Engine) -> None:
    """Roll back an open transaction only: after a read there is none."""

    @sa.event.listens_for(engine, "rollback")
    def rollback(connection: sa.Connection) -> None:
        _end_transaction(connection.connection.dbapi_connection, connection.info)

    # A commit that failed leaves its transaction open, and SQLAlchemy sends no rollback after it.
    @sa.event.listens_for(engine, "reset")
    def reset(connection: object, record: sa.pool.ConnectionPoolEntry, state: object) -> None:  # noqa: ARG001 - SQLAlchemy's signature
        _end_transaction(connection, record.info)


def _end_transaction(connection: object, info: dict[Any, Any]) -> None:
    if not isinstance(connection, sa.AdaptedConnection):
        return
    # A caller that left while the transaction began: it may begin a moment from now.
    begins = info.pop(_BEGINS, False)
    if begins or connection.driver_connection.in_transaction:
        connection.run_async(lambda sqlite: sqlite.rollback())


async def _undone(driver: aiosqlite.Connection) -> None:
    with suppress(sqlite3.Error, ValueError):  # ValueError: it is closed
        await driver.interrupt()
        await driver.rollback()


def begin_immediately(engine: sa.Engine, *, checks_foreign_keys: bool = True) -> None:
    """Let a SQLite engine sync each commit, and begin its writing transactions with BEGIN IMMEDIATE.

    The recipe is SQLAlchemy's: https://docs.sqlalchemy.org/en/21/dialects/sqlite.html.
    """

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, record: object) -> None:  # noqa: ARG001 - SQLAlchemy's signature
        # The driver would begin transactions itself, and only before the first write.
        connection.isolation_level = None
        cursor = connection.cursor()
        # FULL: a decision is on the disk before the action it allows, even if the power fails.
        cursor.execute("PRAGMA synchronous = FULL")
        if checks_foreign_keys:
            cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get(WRITES, False):
            return
        driver: object = connection.connection.dbapi_connection
        if isinstance(driver, sa.AdaptedConnection):
            # One call to the driver's thread. SQLAlchemy's cursor would take three.
            connection.info[_BEGINS] = True
            driver.run_async(lambda sqlite: sqlite.execute("BEGIN IMMEDIATE"))
            del connection.info[_BEGINS]
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")


def postgresql_engine(url: sa.URL, name: str, connections: int, *, pgbouncer: bool) -> AsyncEngine:
    """For a `postgresql+psycopg` address. `name` is the application name of its connections."""
    limits = {
        "statement_timeout": STATEMENT_TIMEOUT_S,
        "lock_timeout": LOCK_TIMEOUT_S,
        "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_S,
    }
    arguments = connect_arguments(url, name, pgbouncer=pgbouncer)
    if not pgbouncer:
        arguments["options"] = " ".join(f"-c {each}={s * 1000:.0f}" for each, s in limits.items())
    engine = create_async_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_use_lifo=True,
        pool_timeout=POOL_TIMEOUT_S,
        hide_parameters=True,
        execution_options={"preserve_rowcount": True},  # of an INSERT as well
        connect_args=arguments,
    )
    if pgbouncer:
        # PgBouncer refuses `options`, and a plain SET would stay with a connection of the server.
        local = (f"set_config('{each}', '{s * 1000:.0f}', true)" for each, s in limits.items())
        setting = f"SELECT {', '.join(local)}"

        @sa.event.listens_for(engine.sync_engine, "begin")
        def begin(connection: sa.Connection) -> None:
            connection.exec_driver_sql(setting)

    return engine


def connect_arguments(url: sa.URL, name: str, *, pgbouncer: bool) -> dict[str, Any]:
    """What psycopg connects with. The address's own keepalive options come first."""
    arguments: dict[str, Any] = {
        "application_name": name,
        "connect_timeout": round(CONNECT_TIMEOUT_S),
    }
    arguments |= {option: s for option, s in KEPT_ALIVE.items() if option not in url.query}
    if pgbouncer:
        arguments["prepare_threshold"] = (
            None  # a prepared statement would stay with the server's connection
        )
    return arguments
