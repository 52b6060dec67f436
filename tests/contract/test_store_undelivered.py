"""Held answers come out unchanged, to one caller at a time, on both databases."""

import asyncio
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.turn_events import TurnFinished
from bot.store.database import Database
from bot.store.tables import undelivered
from bot.store.undelivered import StoredUndelivered
from tests.fixtures_database import database, database_url, other
from tests.fixtures_turn import ASK
from tests.golden.slack_views import EVIDENCE, OUTCOMES, finished

__all__ = ["database", "database_url", "other"]

HOUR_S = 3_600.0


def final() -> TurnFinished:
    record = replace(OUTCOMES[0].record, raw=object())
    odd = "half \ud800 of a pair, \x00, and <!channel>"
    return finished(
        text=odd, evidence=EVIDENCE, outcomes=[replace(OUTCOMES[0], record=record)], notices=["x"]
    )


async def test_a_final_event_is_stored_unchanged_until_it_is_delivered(database: Database) -> None:
    store = StoredUndelivered(database)
    await store.keep(ASK, final())
    await store.keep(ASK, finished(text="a second end"))

    (held,) = await store.claim(10, HOUR_S)

    assert held.ask == ASK
    assert (held.final.text, held.final.notices) == (
        final().text.replace("\ud800", "\ufffd"),
        ["x"],
    )
    assert list(held.final.evidence) == list(EVIDENCE)
    assert held.final.outcomes[0].record.raw is None
    assert 0 <= held.age_s < HOUR_S
    await store.settle(ASK.turn_id)
    await rewind(database, 60.0)
    assert await store.claim(10, HOUR_S) == []


async def test_one_of_many_callers_gets_an_answer_and_a_dead_one_releases_it(
    database: Database, other: Database
) -> None:
    stores = [StoredUndelivered(database), StoredUndelivered(other)] * 3
    await stores[0].keep(ASK, final())

    found = await asyncio.gather(*(store.claim(10, HOUR_S) for store in stores))
    assert sum(map(len, found)) == 1

    await rewind(database, 60.0)
    assert len(await stores[1].claim(10, HOUR_S)) == 1


async def test_an_answer_too_old_to_show_is_found_only_as_overdue(
    database: Database,
) -> None:
    store = StoredUndelivered(database)
    await store.keep(ASK, final())
    assert await store.overdue(10, HOUR_S) == []

    await rewind(database, HOUR_S + 1)

    assert await store.claim(10, HOUR_S) == []
    assert [held.ask for held in await store.overdue(10, HOUR_S)] == [ASK]


async def rewind(database: Database, seconds: float) -> None:
    """So much time passes."""
    micros = int(seconds * 1_000_000)

    async def work(connection: AsyncConnection) -> None:
        await connection.execute(
            sa.text("UPDATE undelivered SET since = since - :s, due_at = due_at - :s"),
            {"s": micros},
        )

    await database.transact(work)
    assert undelivered.name == "undelivered"
