"""Brings a database to the newest schema and says where it stands.

The scripts are read in a thread; only their statements run on the loop.
"""

import asyncio
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

import sqlalchemy as sa
from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, MigrationStep
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import create_async_engine

import bot
from bot.store.engine import Database
from bot.store.failures import storage_errors

_MIGRATION_LOCK = 0x6B6F72746578_01  # replicas that start together migrate one after the other


def scripts_folder() -> Path:
    """The migrations of the checkout, else those packaged with the program."""
    package = Path(bot.__file__).parent
    checkout = package.parent / "migrations"
    # Beside an installed package, a folder of that name could be anyone's.
    if (checkout / "versions" / "0001_initial.py").is_file():
        return checkout
    return package / "_migrations"


@cache
def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    list(scripts.walk_revisions())  # reads every file now
    return scripts


def head() -> str:
    """The newest revision this program knows. Reads files the first time."""
    found = _scripts().get_current_head()
    if found is None:
        raise RuntimeError(f"no migrations in {scripts_folder()}")
    return found


async def current(url: str) -> str | None:
    """The revision the database is at; None when it is empty. Raises StorageUnavailable."""
    database = await Database.open(url)
    try:
        return await database.schema_head()
    finally:
        await database.close()


async def is_current(url: str) -> bool:
    """Whether the database has the newest schema. Raises StorageUnavailable."""
    return await current(url) == await asyncio.to_thread(head)


async def migrate(url: str) -> str:
    """Upgrade to the newest schema in one transaction and name it. Raises StorageUnavailable."""
    newest = await asyncio.to_thread(head)
    await (await Database.open(url)).close()  # creates a SQLite file, refuses a strange URL
    engine = await asyncio.to_thread(
        partial(create_async_engine, url, poolclass=sa.NullPool, hide_parameters=True)
    )
    try:
        with storage_errors():
            async with engine.begin() as connection:
                await connection.run_sync(_upgrade)
    finally:
        await engine.dispose()
    return newest


def _upgrade(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    context = MigrationContext.configure(
        connection, opts={"fn": _missing_steps, "transactional_ddl": True}
    )
    with Operations.context(context):
        context.run_migrations()


def _missing_steps(
    heads: tuple[str, ...],
    context: MigrationContext,  # noqa: ARG001 - Alembic's signature
) -> Iterable[MigrationStep]:
    scripts = _scripts()
    missing = list(scripts.iterate_revisions("head", heads or "base"))
    return [
        MigrationStep.upgrade_from_script(scripts.revision_map, script)
        for script in reversed(missing)
    ]
