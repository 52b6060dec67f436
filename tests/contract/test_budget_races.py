"""Two hundred turns at once on two replicas never spend more than the limit."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import CompleteRequest, Usage
from adapters.llm.port import Price
from bot.chat.rounds import Rounds
from bot.chat.stopping import Signal
from bot.chat.turn_budget import Budget
from bot.domain.budget import BudgetLimits
from bot.domain.ids import MessageTs, SessionId
from bot.store.database import Database
from bot.store.ledger import StoredLedger
from bot.telemetry.metrics import Metrics
from tests.fakes.scripted_provider import PAID, ScriptedProvider, text
from tests.fakes.stores import Memory, MemoryAudit, MemoryLedger
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import HELD, ROUND
from tests.fixtures_turn import ASK

__all__ = ["database", "database_url", "other"]

TURNS = 200
REQUEST = CompleteRequest(system="s", messages=(), max_tokens=100)
WORST = 5344  # micro-dollars one round of REQUEST may cost at PAID
COST = 450


@pytest.mark.parametrize("affordable", [0, 60])
async def test_two_hundred_turns_on_two_replicas_never_overspend(
    database: Database, other: Database, affordable: int
) -> None:
    limit = WORST + affordable * COST
    ledgers = [StoredLedger(database), StoredLedger(other)]
    model = ScriptedProvider([text("x", usage=Usage(100, 0, 0, 10))], price=PAID)
    audit = MemoryAudit(Memory())
    budgets = [
        Budget(Rounds([model]), ledger, audit, BudgetLimits(daily_usd_micros=limit), Metrics())
        for ledger in ledgers
    ]
    most: list[int] = []

    async def turn(number: int) -> None:
        ask = replace(ASK, ts=MessageTs(f"1700000000.{number:06}"))
        budget = budgets[number % 2].for_turn(ask, SessionId(f"s{number}"), "investigate", Signal())
        record = await budget.round(REQUEST, 1, lambda _: None, "")
        assert record.provider in ("scripted", "")
        if number % 20 == 0:
            today = await ledgers[number % 2].today()
            most.append(today.used_usd_micros + today.held_usd_micros)

    async with asyncio.TaskGroup() as group:
        for number in range(TURNS):
            group.create_task(turn(number))

    today = await ledgers[0].today()
    assert today.held_usd_micros == 0
    assert today.used_usd_micros == today.spent_usd_micros == len(model.requests) * COST
    assert 0 < today.used_usd_micros <= limit
    assert max(most) <= limit


prices = st.builds(Price, *[st.integers(0, 50_000_000)] * 4)
tokens = st.integers(0, 300_000)


@given(price=prices, uncached=tokens, read=tokens, written=tokens, out=tokens, spare=tokens)
def test_no_round_costs_more_than_its_worst_case(
    price: Price, uncached: int, read: int, written: int, out: int, spare: int
) -> None:
    cost = price.cost_usd_micros(Usage(uncached, read, written, out))

    assert cost <= price.worst_case_usd_micros(uncached + read + written + spare, out + spare)


@given(price=prices, rounds=st.lists(st.tuples(tokens, tokens), max_size=8))
def test_the_cost_of_many_rounds_equals_the_bill_within_rounding(
    price: Price, rounds: list[tuple[int, int]]
) -> None:
    each = [price.cost_usd_micros(Usage(input_uncached=i, output=o)) for i, o in rounds]
    bill = sum(price.input_uncached * i + price.output * o for i, o in rounds)

    assert bill <= sum(each) * 1_000_000 < bill + len(rounds) * 1_000_000 + 1


amounts = st.integers(1, 400)


@given(
    limit=st.integers(1, 1000),
    steps=st.lists(st.tuples(st.integers(0, 5), amounts, st.sampled_from("rcx")), max_size=30),
)
def test_no_sequence_of_holds_records_and_releases_passes_the_limit(
    limit: int, steps: list[tuple[int, int, str]]
) -> None:
    asyncio.run(_walk(limit, steps))


async def _walk(limit: int, steps: list[tuple[int, int, str]]) -> None:
    ledger = MemoryLedger(Memory())
    for number, (who, amount, what) in enumerate(steps):
        held = ledger.held.get(f"r{who}")
        wanted = replace(HELD, id=f"r{who}", usd_micros=amount)
        row = replace(ROUND, round=number, cost_usd_micros=held[1].usd_micros if held else 0)
        acts: dict[str, Callable[[], Awaitable[object]]] = {
            "r": partial(ledger.reserve, wanted, BudgetLimits(daily_usd_micros=limit)),
            "c": partial(ledger.record, row, f"r{who}"),
            "x": partial(ledger.release, f"r{who}"),
        }
        await acts[what]()
        today = await ledger.today()
        assert today.used_usd_micros + today.held_usd_micros <= limit
