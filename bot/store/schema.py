"""Upgrade a database to the newest schema, report its schema, and check that it takes a change.

Alembic makes every schema, also in a new file, in a thread. A full disk and a read-only replica still
answer reads, so the check writes.
"""

import asyncio
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

import bot
from bot.ports.failures import StorageUnavailable
from bot.store.address import POSTGRESQL, is_behind_pgbouncer, synchronous
from bot.store.database import Database
from bot.store.dialect import storage_errors
from bot.store.engines import SQLITE_BUSY_S, WRITES, begin_immediately, connect_arguments
from bot.store.tables import schema_served

if TYPE_CHECKING:  # loaded only where there is a step to take: a tenth of a start
    from alembic.runtime.migration import MigrationContext, MigrationStep
    from alembic.script import ScriptDirectory

_NAMED = re.compile(r'^(revision|down_revision) = (?:"(\w+)"|None)$', re.MULTILINE)

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_GIVES_WAY = frozenset({"55P03", "40P01"})  # lock not available, deadlock detected
_MIGRATION_LOCK = 0x6B6F72746578_01  # replicas that start together migrate one after the other

# A change that waits for a table keeps everybody else waiting behind it: beside a dump, which holds
# every table for as long as it takes, it would stop all that runs.
LOCK_WAIT_S = 3.0
LOCK_TRIES = 5

# Probes come every few seconds and from anybody: one commit serves those of so long.
ASKED_AGAIN_S = 5.0
# A database with many earlier writers is busy, not full: the known state stays.
PATIENCE_S = 1.0


def scripts_folder() -> Path:
    """The migrations of the checkout, else those packaged with the program."""
    package = Path(bot.__file__).parent
    checkout = package.parent / "migrations"
    # Beside an installed package, a folder of that name could be anyone's.
    if (checkout / "versions" / "0001_initial.py").is_file():
        return checkout
    return package / "_migrations"


@cache
def revisions() -> tuple[str, ...]:
    """All revisions of this program, newest first. Reads files the first time.

    As Alembic would find them, whose import is a tenth of a start.
    """
    follows: dict[str, str] = {}
    for file in scripts_folder().glob("versions/*.py"):
        told = dict(_NAMED.findall(file.read_text(encoding="utf-8")))
        follows[told["down_revision"]] = told["revision"]
    found: list[str] = []
    while following := follows.get(found[-1] if found else ""):
        found.append(following)
    if not found:
        raise RuntimeError(f"no migrations in {scripts_folder()}")
    return tuple(reversed(found))


def head() -> str:
    """The newest revision this program knows. Reads files the first time."""
    return revisions()[0]


class SchemaUnserved(Exception):
    """A newer version changed the database so that this version cannot use it. Nothing was done."""


@dataclass(frozen=True, slots=True)
class SchemaState:
    """A database's schema. `problem` says why this version cannot use it, and the remedy."""

    revision: str | None
    newest: str
    problem: str | None


async def schema_state(database: Database) -> SchemaState:
    """Whether this version can use that database as it is. Raises StorageUnavailable.

    One that a newer version expanded is fine: that version recorded which ones it still serves.
    """
    newest = await asyncio.to_thread(head)
    at = await database.schema_head()
    if at == newest:
        return SchemaState(at, newest, None)
    if at is None or await asyncio.to_thread(_knows, at):
        return SchemaState(
            at,
            newest,
            f"the schema is {'empty' if at is None else 'at ' + at}, and this version needs "
            f"{newest}; run `kortex migrate`, then start again",
        )

    async def ask(connection: AsyncConnection) -> bool:
        return await connection.run_sync(_serves, newest)

    is_served = await database.fetch(ask)
    return SchemaState(at, newest, None if is_served else _unserved(at, newest))


async def schema_state_of(url: str) -> SchemaState:
    """The same of a database that is not open. Raises StorageUnavailable."""
    database = await Database.open(url)
    try:
        return await schema_state(database)
    finally:
        await database.close()


def _unserved(at: str, newest: str) -> str:
    return (
        f"a newer version made the schema {at}, which this version ({newest}) cannot use; start the "
        "newer version, there is nothing to migrate here"
    )


def _knows(revision: str) -> bool:
    return revision in revisions()


def _serves(connection: sa.Connection, revision: str) -> bool:
    if not sa.inspect(connection).has_table(schema_served.name):
        return False
    found = connection.scalar(
        sa.select(schema_served.c.revision).where(schema_served.c.revision == revision)
    )
    return found is not None


async def migrate(url: str) -> str:
    """Upgrade to the newest schema in one transaction and name where the database now is.

    One that a newer version expanded stays as it is. Raises SchemaUnserved, StorageUnavailable.
    """
    database = await Database.open(url)  # creates a SQLite file, refuses a strange URL
    try:
        at = await database.schema_head()
    finally:
        await database.close()
    if at == await asyncio.to_thread(head):
        return at
    return await asyncio.to_thread(_migrate, url)


def _migrate(url: str) -> str:
    engine = _engine(url)
    try:
        for _ in range(LOCK_TRIES):
            with suppress(_Waited), storage_errors(), engine.begin() as connection:
                return _upgrade_unless_waited(connection)
            time.sleep(LOCK_WAIT_S / 3)  # for the waiters behind it
    finally:
        engine.dispose()
    raise StorageUnavailable(
        "its tables are locked, perhaps by a dump; nothing was changed. Run `kortex migrate` "
        "again when the lock is free"
    )


def _engine(url: str) -> sa.Engine:
    """Without a time limit: a migration takes as long as the tables are large."""
    address = synchronous(url)
    if address.drivername == POSTGRESQL:
        arguments = connect_arguments(address, "kortex-migrate", pgbouncer=is_behind_pgbouncer(url))
        return sa.create_engine(
            address, poolclass=sa.NullPool, hide_parameters=True, connect_args=arguments
        )
    engine = sa.create_engine(
        address,
        poolclass=sa.NullPool,
        hide_parameters=True,
        connect_args={"timeout": SQLITE_BUSY_S},
        execution_options={WRITES: True},
    )
    begin_immediately(engine, checks_foreign_keys=False)  # tables are rebuilt
    return engine


class _Waited(Exception):
    """Another connection used a table for longer than the change may wait, or waits for it; it was
    undone.
    """


def _upgrade_unless_waited(connection: sa.Connection) -> str:
    try:
        return _upgrade(connection)
    except sa.exc.DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) not in _GIVES_WAY:
            raise
        raise _Waited from error


@cache
def _scripts() -> "ScriptDirectory":
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    list(scripts.walk_revisions())  # reads every file now
    return scripts


def _upgrade(connection: sa.Connection) -> str:
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        # Only from here on: other migrations are waited for.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_WAIT_S * 1000:.0f}")
    context = MigrationContext.configure(
        connection, opts={"fn": _missing_steps, "transactional_ddl": True}
    )
    newest, at = head(), context.get_current_revision()
    if at is not None and at not in revisions():
        if not _serves(connection, newest):
            raise SchemaUnserved(_unserved(at, newest))
        return at
    with Operations.context(context):
        context.run_migrations()
    if at != newest:
        _record_served(connection)
    return newest


def _record_served(connection: sa.Connection) -> None:
    served: list[dict[str, str]] = []
    for script in _scripts().walk_revisions():
        served.append({"revision": script.revision})
        if getattr(script.module, "contracts", False):
            break
    connection.execute(schema_served.delete())
    connection.execute(schema_served.insert(), served)


def _missing_steps(
    heads: tuple[str, ...],
    context: "MigrationContext",  # noqa: ARG001 - Alembic's signature
) -> "Iterable[MigrationStep]":
    from alembic.runtime.migration import MigrationStep

    known = _scripts()
    missing = list(known.iterate_revisions("head", heads or "base"))
    return [
        MigrationStep.upgrade_from_script(known.revision_map, script)
        for script in reversed(missing)
    ]


class Writable:
    """Tries a change that changes nothing, and commits it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._at = float("-inf")
        self._refused: StorageUnavailable | None = None

    async def check(self) -> None:
        """Raises StorageUnavailable when the last change tried was refused.

        Needs a schema that serves this version.
        """
        if time.monotonic() - self._at >= ASKED_AGAIN_S:
            self._at = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._try()
        if self._refused is not None:
            raise self._refused

    async def _try(self) -> None:
        try:
            await self._database.transact(_touch, again=False)
            self._refused = None
        except StorageUnavailable as error:
            self._refused = error


async def _touch(connection: AsyncConnection) -> None:
    mine = schema_served.c.revision == head()
    await connection.execute(schema_served.update().where(mine).values(revision=head()))
