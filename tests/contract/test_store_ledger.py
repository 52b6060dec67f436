"""What Ledger promises, in memory, on SQLite and on PostgreSQL."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from bot.domain.budget import BudgetLimits, Limit, Refusal
from bot.domain.ids import SessionId, TurnId, UserId
from bot.ports.ledger import SpentBy
from bot.store.allowance import HELD_S
from bot.store.columns import Instant
from bot.store.database import Database
from bot.store.dialect import seconds_ago
from bot.store.ledger import StoredLedger
from bot.store.ledger_tables import reservations
from tests.fixtures_database import database, database_url
from tests.fixtures_stores import HELD, ROUND, Stores, stores
from tests.held_connection import reading, writing

__all__ = ["database", "database_url", "stores"]


async def test_nothing_is_spent_at_first(stores: Stores) -> None:
    assert (await stores.ledger.today()).spent_usd_micros == 0
    assert list(await stores.ledger.report(None, "user")) == []


async def test_a_round_counts_once(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, cost_usd_micros=9))
    assert (await stores.ledger.today()).spent_usd_micros == 1500


async def test_a_round_recorded_twenty_times_at_once_counts_once(stores: Stores) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(stores.ledger.record(ROUND))
    assert (await stores.ledger.today()).spent_usd_micros == 1500


@pytest.mark.parametrize("change", [{"turn_id": "t2"}, {"round": 2}, {"provider": "openai"}])
async def test_another_turn_round_or_provider_counts_too(
    stores: Stores, change: dict[str, object]
) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, **change))  # type: ignore[arg-type]
    assert (await stores.ledger.today()).spent_usd_micros == 3000


async def test_an_unknown_price_is_reported_and_not_counted_as_free(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, round=2, cost_usd_micros=None))
    assert (await stores.ledger.today()).spent_usd_micros == 1500
    (row,) = await stores.ledger.report(None, "user")
    assert (row.rounds, row.rounds_unpriced) == (2, 1)


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("user", ["U2", "U1"]),
        ("channel", ["incident-checkout"]),
        ("provider", ["anthropic"]),
        ("session", ["session:1"]),
    ],
)
async def test_a_report_lists_the_most_expensive_first(
    stores: Stores, by: str, names: list[str]
) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, round=2, user=UserId("U2"), cost_usd_micros=9_000))
    report = await stores.ledger.report(None, by)
    assert [row.name for row in report] == names
    assert sum(row.usd_micros for row in report) == 10_500
    assert sum(row.tokens for row in report) == 260


async def test_a_report_has_whole_numbers(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    assert list(await stores.ledger.report(None, "provider")) == [
        SpentBy("anthropic", 1500, 1, 0, 130)
    ]


async def test_a_report_covers_one_day(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    today = datetime.now(UTC).date()
    days = [today + timedelta(days=n) for n in (-1, 0, 1)]
    reports = [await stores.ledger.report(day, "user") for day in days]
    assert sum(len(report) for report in reports) == 1
    assert list(await stores.ledger.report(today - timedelta(days=2), "user")) == []


async def test_an_unknown_grouping_is_refused(stores: Stores) -> None:
    with pytest.raises(ValueError, match="colour"):
        await stores.ledger.report(None, "colour")


THOUSAND = BudgetLimits(daily_usd_micros=1000)


async def test_a_reservation_counts_until_its_cost_replaces_it(stores: Stores) -> None:
    assert await stores.ledger.reserve(HELD, THOUSAND) is None
    refused = await stores.ledger.reserve(replace(HELD, id="r2"), THOUSAND)
    assert refused == Refusal(Limit.DAILY, most=1000, spent=0, held=600, wanted=600)
    assert (await stores.ledger.today()).held_usd_micros == 600

    await stores.ledger.record(replace(ROUND, cost_usd_micros=400), "r1")

    today = await stores.ledger.today()
    assert (today.used_usd_micros, today.held_usd_micros) == (400, 0)
    assert await stores.ledger.reserve(replace(HELD, id="r2"), THOUSAND) is None


async def test_a_repeated_reservation_replaces_its_amount(stores: Stores) -> None:
    for amount in (600, 900, 900):
        again = replace(HELD, usd_micros=amount)
        assert await stores.ledger.reserve(again, THOUSAND) is None
    assert (await stores.ledger.today()).held_usd_micros == 900


async def test_a_released_reservation_counts_no_more(stores: Stores) -> None:
    await stores.ledger.reserve(HELD, THOUSAND)
    await stores.ledger.release("r1")
    await stores.ledger.release("r1")
    assert (await stores.ledger.today()).held_usd_micros == 0


async def test_a_refused_reservation_keeps_its_earlier_amount(stores: Stores) -> None:
    await stores.ledger.reserve(HELD, THOUSAND)
    refused = await stores.ledger.reserve(replace(HELD, usd_micros=1001), THOUSAND)
    assert refused == Refusal(Limit.DAILY, most=1000, spent=0, held=0, wanted=1001)
    assert (await stores.ledger.today()).held_usd_micros == 600


LIMITS = {
    Limit.CHANNEL: (BudgetLimits(channel_daily_usd_micros=1000), {"channel_id": "C2"}),
    Limit.SESSION: (BudgetLimits(session_tokens=170), {"session_id": SessionId("session:2")}),
    Limit.USER: (BudgetLimits(user_hourly_questions=1), {"user": UserId("U2")}),
}


@pytest.mark.parametrize("limit", list(LIMITS))
@pytest.mark.parametrize("spent", [True, False], ids=["spent", "held"])
async def test_each_limit_applies_only_to_its_own_scope(
    stores: Stores, limit: Limit, spent: bool
) -> None:
    limits, elsewhere = LIMITS[limit]
    first, second = replace(HELD, tokens=130), replace(HELD, id="r2", turn_id=TurnId("turn:2"))
    other = replace(second, id="r3", **elsewhere)  # type: ignore[arg-type]
    await stores.ledger.reserve(first, limits)
    row = replace(ROUND, cost_usd_micros=600, channel_id="C1")
    await stores.ledger.record(row, "r1" if spent else "")

    refused = await stores.ledger.reserve(second, limits)
    assert refused is not None
    assert refused.limit is limit
    assert await stores.ledger.reserve(other, limits) is None


OTHERS = replace(HELD, id="r2", turn_id=TurnId("turn:2"))
CAPPED = BudgetLimits(session_tokens=90)


async def _age(database: Database, seconds: float) -> None:
    async with writing(database) as connection:
        at = sa.type_coerce(seconds_ago(seconds), Instant())
        await connection.execute(reservations.update().values(at=at))


async def test_a_dead_processs_reservation_of_a_thread_lapses_without_a_daily_limit(
    database: Database,
) -> None:
    ledger = StoredLedger(database)
    assert await ledger.reserve(HELD, CAPPED) is None
    assert await ledger.reserve(OTHERS, CAPPED) == Refusal(
        Limit.SESSION, most=90, spent=0, held=50, wanted=50
    )
    await _age(database, HELD_S + 60)
    assert await ledger.reserve(OTHERS, CAPPED) is None


async def test_a_resumed_turn_is_not_blocked_by_its_own_reservation(
    stores: Stores,
) -> None:
    assert await stores.ledger.reserve(HELD, CAPPED) is None
    assert await stores.ledger.reserve(replace(HELD, id="its next process"), CAPPED) is None


async def test_reservations_of_dead_processes_do_not_accumulate(database: Database) -> None:
    ledger = StoredLedger(database)
    await ledger.reserve(HELD, CAPPED)
    await _age(database, 3 * 86_400)
    await ledger.reserve(OTHERS, CAPPED)
    await ledger.forget_dead()
    async with reading(database) as connection:
        left = await connection.scalars(sa.select(reservations.c.id))
        assert list(left) == ["r2"]


async def test_an_assumed_cost_counts_and_is_not_reported_as_spent(stores: Stores) -> None:
    await stores.ledger.record(replace(ROUND, cost_usd_micros=None, counted_usd_micros=990))
    refused = await stores.ledger.reserve(HELD, THOUSAND)
    assert refused == Refusal(Limit.DAILY, most=1000, spent=990, held=0, wanted=600)
    today = await stores.ledger.today()
    assert (today.spent_usd_micros, today.used_usd_micros) == (0, 990)


async def test_every_operation_is_read_once_and_in_order(stores: Stores) -> None:
    rows = [replace(ROUND, turn_id=TurnId(f"turn:{n}"), round=r) for n in range(30) for r in (1, 2)]
    for row in rows:
        await stores.ledger.record(row)
    since = datetime.now(UTC) - timedelta(hours=1)
    read = [o async for o in stores.ledger.entries(since, since + timedelta(hours=2))]
    assert sorted(o.entry.turn_id + str(o.entry.round) for o in read) == sorted(
        row.turn_id + str(row.round) for row in rows
    )
    assert [o.at for o in read] == sorted(o.at for o in read)
    assert ROUND in [replace(o.entry, turn_id=ROUND.turn_id, round=1) for o in read]
    assert [o async for o in stores.ledger.entries(since, since)] == []
