"""What Ledger promises, in memory, on SQLite and on PostgreSQL."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.llm.messages import Usage
from bot.domain.ids import SessionId, TurnId, UserId
from bot.ports import Spending, SpentBy
from tests.fixtures_stores import Stores, stores

__all__ = ["stores"]

ROUND = Spending(
    session_id=SessionId("session:1"),
    turn_id=TurnId("turn:1"),
    round=1,
    user=UserId("U1"),
    channel="incident-checkout",
    provider="anthropic",
    model="m",
    purpose="investigate",
    usage=Usage(100, 20, 3, 7),
    cost_usd_micros=1500,
    duration_ms=900,
)


async def test_nothing_is_spent_at_first(stores: Stores) -> None:
    assert await stores.ledger.spent_today() == 0
    assert list(await stores.ledger.report(None, "user")) == []


async def test_a_round_counts_once(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, cost_usd_micros=9))
    assert await stores.ledger.spent_today() == 1500


async def test_recorded_twenty_times_at_once_it_counts_once(stores: Stores) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(stores.ledger.record(ROUND))
    assert await stores.ledger.spent_today() == 1500


@pytest.mark.parametrize("change", [{"turn_id": "t2"}, {"round": 2}, {"provider": "openai"}])
async def test_another_turn_round_or_provider_counts_too(
    stores: Stores, change: dict[str, object]
) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, **change))  # type: ignore[arg-type]
    assert await stores.ledger.spent_today() == 3000


async def test_an_unknown_price_is_reported_not_counted_as_free(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, round=2, cost_usd_micros=None))
    assert await stores.ledger.spent_today() == 1500
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
async def test_a_report_groups_the_most_expensive_first(
    stores: Stores, by: str, names: list[str]
) -> None:
    await stores.ledger.record(ROUND)
    await stores.ledger.record(replace(ROUND, round=2, user=UserId("U2"), cost_usd_micros=9_000))
    report = await stores.ledger.report(None, by)
    assert [row.name for row in report] == names
    assert sum(row.usd_micros for row in report) == 10_500
    assert sum(row.tokens for row in report) == 260


async def test_a_report_is_whole_numbers(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    assert list(await stores.ledger.report(None, "provider")) == [
        SpentBy("anthropic", 1500, 1, 0, 130)
    ]


async def test_a_report_is_of_one_day(stores: Stores) -> None:
    await stores.ledger.record(ROUND)
    today = datetime.now(UTC).date()
    days = [today + timedelta(days=n) for n in (-1, 0, 1)]
    reports = [await stores.ledger.report(day, "user") for day in days]
    assert sum(len(report) for report in reports) == 1
    assert list(await stores.ledger.report(today - timedelta(days=2), "user")) == []


async def test_an_unknown_grouping_is_refused(stores: Stores) -> None:
    with pytest.raises(ValueError, match="colour"):
        await stores.ledger.report(None, "colour")
