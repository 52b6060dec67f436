"""`kortex migrate`, `backup` and `restored`: the database itself."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import click

from bot.app import rules
from bot.app.stores import open_redactor, open_restore_guard
from bot.cli.exit_codes import OK
from bot.cli.invocation import configured
from bot.engine.config import LEASE_S, take_lock
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store import schema
from bot.store.backup import BackupRefused, write_backup
from bot.store.database import Database
from bot.store.restore_guard import CopyState, RestoreGuard
from bot.store.sealing import Sealing


@click.command()
@configured
async def migrate(settings: Settings) -> int:
    """Bring the database's schema to this version.

    It is one transaction: all or nothing. Replicas of the previous release keep running.
    """
    at = await schema.migrate(settings.database.url.get_secret_value())
    if at == schema.head():
        print(f"the schema is at {at}")
    else:
        print(
            f"the schema is at {at}, which a newer version made; this version works with it. "
            "There is nothing to migrate."
        )
    return OK


@click.command()
@click.argument("target", type=click.Path(path_type=Path), metavar="FILE")
@configured
async def backup(settings: Settings, target: Path) -> int:
    """Copy the SQLite database into FILE, also while Kortex runs.

    FILE must not exist yet. The copy is checked before it gets its name.

    \b
    Example:
      kortex backup /backups/kortex-$(date +%F).db
    """
    file = rules.sqlite_file(settings)
    if file is None:
        raise ConfigurationError(
            "database.url: this is a PostgreSQL database; copy it with its own tools "
            "(pg_dump, or base backups and the log): docs/backup.md"
        )
    async with AsyncExitStack() as stack:
        await opened(settings, stack)  # of a schema that knows copies
    try:
        size = await asyncio.to_thread(write_backup, file, target)
    except BackupRefused as error:
        raise ConfigurationError(str(error)) from error
    print(f"{target}: {size} bytes, checked. It holds conversations: protect it as you do logs.")
    return OK


@click.command()
@click.option("--moved", is_flag=True, help="This is the moved database itself, not a copy.")
@configured
async def restored(settings: Settings, moved: bool) -> int:
    """Mark this database as restored from a copy.

    Stop every Kortex first. The next start ends what was open in the copy as unknown, and sends none
    of it again.
    """
    async with AsyncExitStack() as stack:
        file = rules.sqlite_file(settings)
        if file is not None and file.exists():
            stack.enter_context(await asyncio.to_thread(take_lock, file))
        database = await opened(settings, stack)
        origin = open_restore_guard(settings, database)
        if await origin.is_served(LEASE_S):
            raise ConfigurationError(
                "database.url: a Kortex runs on this database. Stop all of them first; nothing "
                "was changed"
            )
        await (_take_as_itself(origin) if moved else origin.mark_copied())
    print(
        "marked as the database itself: open work continues at the next start"
        if moved
        else "marked as restored: the next start closes open work as unknown and sends nothing"
    )
    return OK


async def _take_as_itself(origin: RestoreGuard) -> None:
    if await origin.judge() is CopyState.COPY:
        raise ConfigurationError(
            "database.url: this database is already recognised as a copy (of `kortex backup` or "
            "a dump, or rows are missing). Start it: open work is closed"
        )
    await origin.settle()


async def opened(settings: Settings, stack: AsyncExitStack) -> Database:
    """The database without a migration and without a check of its audit log, closed with the stack.

    Raises ConfigurationError, StorageUnavailable.
    """
    url = settings.database.url.get_secret_value()
    sealing = Sealing(rules.audit_keys(settings), open_redactor(settings))
    try:
        database = await Database.open(url, sealing=sealing)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    stack.push_async_callback(database.close)
    found = await schema.schema_state(database)
    if found.revision is None:
        raise ConfigurationError("database.url: the database is empty")
    if found.problem:
        raise ConfigurationError(f"database.url: {found.problem}")
    return database
