"""`kortex check` on the database: it is there, and its tables are those that this version works on."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import sqlalchemy as sa

from adapters.fault import Fault, fault_of
from bot.commands.patience import SHARED_S, unanswered, within
from bot.ports.failures import StorageUnavailable
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store import schema
from bot.store.address import POSTGRESQL, addressed
from bot.store.database import Database
from bot.store.engines import CONNECT_TIMEOUT_S
from bot.wiring.audit_outlets import check_behind
from bot.wiring.stores import open_stores

# What PostgreSQL answers who wants to come in, in words: libpq has no codes there.
_REFUSALS: Final = (
    ("authentication failed", Fault.CREDENTIAL),
    ("role ", Fault.CREDENTIAL),
    ("does not exist", Fault.ABSENT),
)


async def check_database(settings: Settings) -> Sequence[Finding]:
    """Whether it serves, and sinks of the trail that are behind. An embedded one is brought to its schema."""
    try:
        async with asyncio.timeout(within(SHARED_S)), AsyncExitStack() as stack:
            await _is_there(settings.database.url.get_secret_value())
            database = (await open_stores(settings, stack)).database
            at = await schema.standing(database)
            behind = await check_behind(settings, database)
    except TimeoutError:
        return [Finding("database", False, unanswered(SHARED_S), fault=Fault.SILENT)]
    except (ConfigurationError, StorageUnavailable) as error:
        return [Finding("database", False, str(error), fault=fault_of(error) or _said(error))]
    newer = f"schema {at.revision}, expanded by a newer version, which serves this one too"
    said = "schema current" if at.revision == at.newest else newer
    return [Finding("database", True, f"{database.dialect}, {said}"), *behind]


async def _is_there(url: str) -> None:
    """One try, so that why it fails is told; what uses a database waits for it. Raises StorageUnavailable."""
    if addressed(url).drivername != POSTGRESQL:
        return
    database = await Database.open(url, patience_s=())
    try:
        await database.ping()
    except StorageUnavailable as error:
        raise error from await _why(addressed(url))
    finally:
        await database.close()


async def _why(address: sa.URL) -> OSError | None:
    """What a plain connection fails with, which libpq tells in words alone."""
    if not address.host:
        return None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(address.host, address.port or 5432)
    except OSError as error:
        return error
    writer.close()
    return None


def _said(error: Exception) -> Fault | None:
    return next((fault for words, fault in _REFUSALS if words in str(error)), None)
