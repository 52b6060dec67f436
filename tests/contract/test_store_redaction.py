"""What comes from outside is redacted on its way into the database, or does not get there."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.ingested_event import IngestedEvent
from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.ingested_events import StoredEvents
from bot.store.sealing import Sealing
from bot.store.tables import events, incidents, switches
from tests.fakes.redactor import MASK, FakeRedactor
from tests.fixtures_database import database_url

__all__ = ["database_url"]

OPENED = IngestedEvent(
    id="1",
    source="pager",
    type="koder.incident.opened",
    product="checkout",
    at=datetime(2026, 4, 7, tzinfo=UTC),
    data={"title": "checkout SECRET-title", "resolution": "SECRET-way", "log": ["SECRET-line"]},
)


@pytest.fixture
async def redactor() -> FakeRedactor:
    return FakeRedactor()


@pytest.fixture
async def sealed(database_url: str, redactor: FakeRedactor) -> AsyncIterator[Database]:
    database = await Database.open(database_url, sealing=Sealing(redactor=redactor))
    yield database
    await database.close()


async def stored(database: Database) -> str:
    """Every event and incident."""

    async def work(connection: AsyncConnection) -> str:
        tables = (events, incidents, switches)
        return repr([(await connection.execute(sa.select(t))).all() for t in tables])

    return await database.fetch(work)


async def test_an_event_and_its_incident_contain_no_secret(sealed: Database) -> None:
    await StoredEvents(sealed).add([OPENED])
    await StoredEvents(sealed).add([replace(OPENED, id="2", type="koder.incident.closed")])

    kept = await stored(sealed)
    assert f"checkout {MASK}" in kept
    assert "SECRET" not in kept
    assert "secret" not in kept


async def test_an_outside_text_column_is_redacted_for_every_writer(sealed: Database) -> None:
    async def work(connection: AsyncConnection) -> None:
        row = {"name": "freeze", "is_on": True, "reason": "SECRET-why", "at": OPENED.at}
        await connection.execute(switches.insert().values(**row))

    await sealed.transact(work)

    assert f"'{MASK}'" in await stored(sealed)


async def test_text_that_cannot_be_redacted_is_not_stored(
    sealed: Database, redactor: FakeRedactor
) -> None:
    redactor.fails = True
    with pytest.raises(StorageUnavailable):
        await StoredEvents(sealed).add([OPENED])

    async def work(connection: AsyncConnection) -> None:
        row = {"name": "freeze", "is_on": True, "reason": "why", "at": OPENED.at}
        await connection.execute(switches.insert().values(**row))

    with pytest.raises(StorageUnavailable):
        await sealed.transact(work)

    redactor.fails = False
    assert await stored(sealed) == "[[], [], []]"
