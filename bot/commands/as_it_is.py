"""The configured database, opened as it is: not migrated, and whether or not its trail holds."""

from contextlib import AsyncExitStack

from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.database import Database
from bot.store.schema import standing
from bot.store.sealing import Sealing
from bot.wiring import rules
from bot.wiring.stores import open_redactor


async def opened(settings: Settings, stack: AsyncExitStack) -> Database:
    """Closed with the stack. Raises ConfigurationError, StorageUnavailable."""
    url = settings.database.url.get_secret_value()
    sealing = Sealing(rules.audit_keys(settings), open_redactor(settings))
    try:
        database = await Database.open(url, sealing=sealing)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    stack.push_async_callback(database.close)
    found = await standing(database)
    if found.revision is None:
        raise ConfigurationError("database.url: the database is empty; nothing was ever kept in it")
    if found.problem:
        raise ConfigurationError(f"database.url: {found.problem}")
    return database
