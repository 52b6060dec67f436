"""What `kortex backup` and `kortex restored` do."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from bot.commands.as_it_is import opened
from bot.commands.ending import OK
from bot.commands.verbs import guarded, loaded
from bot.engine.config import LEASE_S
from bot.engine.database_lock import take_lock
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.backup import BackupRefused, write_backup
from bot.store.origin import Origin, Standing
from bot.wiring import rules
from bot.wiring.stores import open_origin


def backup(config: Path, target: Path) -> int:
    """`kortex backup FILE`: a copy of the SQLite database, also while the bot runs."""

    async def work(settings: Settings) -> int:
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
        print(f"{target}: {size} bytes, checked. It holds what was said; keep it as you keep logs.")
        return OK

    return guarded(lambda: work(loaded(config)))


def restored(config: Path, *, moved: bool) -> int:
    """`kortex restored`: this database is a copy; or, `moved`, it is itself at another place."""

    async def work(settings: Settings) -> int:
        async with AsyncExitStack() as stack:
            file = rules.sqlite_file(settings)
            if file is not None and file.exists():
                stack.enter_context(await asyncio.to_thread(take_lock, file))
            database = await opened(settings, stack)
            origin = open_origin(settings, database)
            if await origin.is_served(LEASE_S):
                raise ConfigurationError(
                    "database.url: a Kortex runs on this database. Stop every one of them first; "
                    "nothing was changed"
                )
            await (_take_as_itself(origin) if moved else origin.mark_copied())
        print(
            "taken as the database itself: what is open in it goes on with the next start"
            if moved
            else "noted: the next start ends what was open in this copy as unknown, sends nothing "
            "and says nothing of it"
        )
        return OK

    return guarded(lambda: work(loaded(config)))


async def _take_as_itself(origin: Origin) -> None:
    if await origin.judge() is Standing.COPY:
        raise ConfigurationError(
            "database.url: this database shows that it is a copy: `kortex backup` or a dump made "
            "it, or rows are gone that were here. Start it as it is: it closes what was open"
        )
    await origin.settle()
