"""What is prepared answers as it does through SQLAlchemy: same text, same values, same rows."""

import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

import pytest
import sqlalchemy as sa
from blockbuster import BlockBuster
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

import bot.store
from bot.store import (
    accepted,
    allowance,
    channel_names,
    incident_rows,
    ledger,
    session_rows,
    stranded,
    turn_steps,
)
from bot.store import tickets as ticket_rows
from bot.store.address import addressed
from bot.store.columns import Instant
from bot.store.database import Database
from bot.store.dialect import AUDIT_LOCKED, Connection
from bot.store.postgres_threads import engine_of
from bot.store.prepared import _MOST_ITEMS, Driver, Statements, _prepared, prepared
from bot.store.tables import tickets
from tests.fixtures_database import database, database_url, postgres_url, sqlite_url

__all__ = ["database", "database_url", "postgres_url", "sqlite_url"]

AT = datetime(2026, 11, 23, 14, 2, 3, 456789, tzinfo=UTC)
_WITHIN = re.compile(r"^-- |'main'")
MADE_FOR_A_DIALECT = (
    accepted._every, accepted._keeping, accepted._placing, accepted._waiting, incident_rows._inserting,
    ledger._recording, ledger._reserving, session_rows.beginning, session_rows.opening,
    stranded._in_line, stranded._left,
    ticket_rows._entering, ticket_rows._held, ticket_rows._leaving, ticket_rows._standing,
    ticket_rows._unstarted,
    turn_steps._kept,
)  # fmt: skip


def every(dialect: str) -> Sequence[sa.Executable]:
    found: dict[sa.Executable, None] = {}
    for name in pkgutil.iter_modules(bot.store.__path__, "bot.store."):
        own = vars(importlib.import_module(name.name)).values()
        found |= {each: None for each in own if isinstance(each, sa.Executable)}
    made = [make(dialect) for make in MADE_FOR_A_DIALECT]
    names = [channel_names._keeping(dialect, again=again) for again in (True, False)]
    return [each for each in (*found, *made, *names, allowance._used()) if each in _prepared]


def asked_for(bind: sa.BindParameter[Any], items: int) -> object:
    if bind.expanding:
        return [f"{bind.key}-{n}" for n in range(items)]
    kinds: dict[type[TypeEngine[Any]], object] = {Instant: AT, sa.Boolean: True, sa.Integer: 7}
    found = (value for kind, value in kinds.items() if isinstance(bind.type, kind))
    return next(found, f"{bind.key} \x00 \ud800")


@pytest.fixture
def _may_block(_nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[sa.Engine]:
    made = sa.create_engine(sa.make_url(sqlite_url).set(drivername="sqlite"))
    sa.event.listen(made, "begin", lambda each: each.exec_driver_sql("BEGIN"))
    sa.event.listen(made, "connect", lambda each, _record: setattr(each, "isolation_level", None))
    yield made
    made.dispose()


def driver_of(connection: sa.Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.dbapi_connection)


def through(
    connection: sa.Connection, statement: sa.Executable, given: Mapping[str, Any], *, directly: bool
) -> tuple[Sequence[tuple[object, ...]], Sequence[str], int, Sequence[str]]:
    """The rows, their names, how many were changed, and what SQLite was told."""
    told: list[str] = []
    driver = driver_of(connection)
    with connection.begin() as transaction:
        driver.set_trace_callback(told.append)
        if directly:
            compiled = Statements(connection.dialect).of(statement)
            assert compiled is not None
            found: Any = compiled.run(driver, given)
        else:
            found = connection.execute(statement, given)
        driver.set_trace_callback(None)
        has_rows = directly or found.returns_rows
        rows = [tuple(row) for row in found] if has_rows else []
        names = [*found.keys()] if has_rows else []
        count = found.rowcount
        transaction.rollback()
    # Not what triggers and the index of words ask within.
    return rows, names, count, [each for each in told if not _WITHIN.search(each)]


def without_clock(row: tuple[object, ...]) -> tuple[object, ...]:
    """The database's clock goes on between two statements."""
    now = datetime.now(UTC)
    near = timedelta(minutes=1)
    whole = now.timestamp() * 1e6

    def stood(value: object) -> object:
        if isinstance(value, datetime) and abs(value - now) < near:
            return "now"
        return "now" if isinstance(value, int) and abs(value - whole) < 60e6 else value

    return tuple(map(stood, row))


@pytest.mark.parametrize("items", [0, 1, 3])
def test_prepared_or_not_the_database_is_told_the_same_and_so_are_we(
    engine: sa.Engine, items: int
) -> None:
    with engine.connect() as connection:
        driver_of(connection).execute("PRAGMA foreign_keys = OFF")
        for statement in {*every("sqlite")} - {AUDIT_LOCKED}:
            compiled = cast("sa.Select[Any]", statement).compile(dialect=connection.dialect)
            assert isinstance(compiled, SQLCompiler)
            binds = [each for each in compiled.binds.values() if each.required]
            given = {each.key: asked_for(each, items) for each in binds}
            ours = through(connection, statement, given, directly=True)
            theirs = through(connection, statement, given, directly=False)
            assert ours[3] == theirs[3]
            assert [*map(without_clock, ours[0])] == [*map(without_clock, theirs[0])]
            if theirs[1]:
                assert len(ours[1]) == len(theirs[1])
            else:
                assert ours[2] == theirs[2]


def answered(
    connection: sa.Connection, statement: sa.Executable, given: Mapping[str, Any], *, directly: bool
) -> object:
    """By PostgreSQL, undone: its rows and how many were changed, or what it refuses."""
    driver = cast("Driver", connection.connection.dbapi_connection)
    compiled = Statements(connection.dialect).of(statement)
    assert compiled is not None
    run = partial(compiled.run, driver) if directly else partial(connection.execute, statement)
    transaction = connection.begin()
    connection.exec_driver_sql("TRUNCATE incidents RESTART IDENTITY CASCADE")  # it numbers them
    try:
        found: Any = run(given)
        count = found.rowcount
        return [*map(without_clock, map(tuple, found))] if rows_of(statement) else count
    except sa.exc.DBAPIError as error:
        return getattr(error.orig, "sqlstate", None)
    finally:
        transaction.rollback()


def rows_of(statement: sa.Executable) -> bool:
    return bool([*cast("sa.Select[Any]", statement).exported_columns])


@pytest.mark.usefixtures("_may_block")
@pytest.mark.parametrize("items", [0, 1, 3])
def test_prepared_or_not_postgresql_answers_the_same(postgres_url: str, items: int) -> None:
    url = addressed(postgres_url)
    engine = engine_of(url, "kortex-test", connect_timeout_s=5, idle_s=6)
    with engine.connect() as connection:
        connection.exec_driver_sql("SET session_replication_role = replica")
        connection.commit()
        for statement in every("postgresql"):
            compiled = cast("sa.Select[Any]", statement).compile(dialect=connection.dialect)
            assert isinstance(compiled, SQLCompiler)
            binds = [each for each in compiled.binds.values() if each.required]
            given = {each.key: asked_for(each, items) for each in binds}
            ours = answered(connection, statement, given, directly=True)
            assert ours == answered(connection, statement, given, directly=False), str(statement)
    engine.dispose()


async def ran(database: Database, statement: sa.Executable, given: Any) -> Sequence[Any]:
    async def work(connection: Connection) -> Sequence[Any]:
        found = await connection.execute(statement, given)
        return [*found] if isinstance(statement, sa.Select) else [found.rowcount]

    return await database.transact(work)


TICKETS = prepared(
    tickets.insert().values({each.name: sa.bindparam(each.name) for each in tickets.c})
)
AMONG = prepared(
    sa.select(tickets.c.id, tickets.c.deaths.label("died"))
    .where(tickets.c.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(tickets.c.id)
)


def ticket(n: int, **other: object) -> dict[str, object]:
    row = {"id": f"t{n:02d}", "thread": f"thread {n}", "ts": "1", "state": "waiting", "owner": ""}
    return row | {"stop_by": None, "deaths": n, "steps": None} | other


async def test_many_rows_are_written_and_read_by_name(database: Database) -> None:
    for some in (range(1), range(1, 3), range(3, 3 + _MOST_ITEMS), range(3 + _MOST_ITEMS, 40)):
        assert await ran(database, TICKETS, [ticket(n) for n in some]) == [len(some)]
    for wanted in (0, 2, _MOST_ITEMS, _MOST_ITEMS + 1, 40):
        found = await ran(database, AMONG, {"ids": [f"t{n:02d}" for n in range(wanted)]})
        assert [(row.id, row.died) for row in found] == [(f"t{n:02d}", n) for n in range(wanted)]


async def test_what_the_database_refuses_is_sqlalchemys_error_without_the_values(
    database: Database,
) -> None:
    await ran(database, TICKETS, ticket(1))
    for again in (ticket(1, owner="secret"), [ticket(2), ticket(1, owner="secret")]):
        with pytest.raises(
            sa.exc.IntegrityError, match=r"UNIQUE constraint|duplicate key"
        ) as refused:
            await ran(database, TICKETS, again)
        assert "secret" not in str(refused.value)
    assert len(await ran(database, AMONG, {"ids": ["t01", "t02"]})) == 1


async def test_a_savepoint_undoes_what_was_prepared_within(database: Database) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute(TICKETS, ticket(1))
        try:
            async with connection.begin_nested():
                await connection.execute(TICKETS, ticket(2))
                await connection.execute(TICKETS, ticket(1))
        except sa.exc.IntegrityError:
            await connection.execute(TICKETS, ticket(3))

    await database.transact(work)
    found = await ran(database, AMONG, {"ids": ["t01", "t02", "t03"]})
    assert [row.id for row in found] == ["t01", "t03"]


async def test_who_listens_to_statements_hears_of_all(database: Database) -> None:
    heard: list[str] = []

    def hear(_c: object, _cursor: object, statement: str, *_: object) -> None:
        heard.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", hear)
    try:
        await ran(database, AMONG, {"ids": ["t01"]})
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", hear)
    assert any("tickets" in each for each in heard)
