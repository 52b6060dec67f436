"""Money around a round: the day's limit, one row a round, and nothing bought twice."""

import pytest

from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, Usage
from adapters.llm.port import Provider
from bot.chat.rounds import Rounds
from bot.chat.spending import SPENT, Purse, Spender
from bot.domain.audit import AuditKind
from bot.domain.budget import BudgetLimits
from bot.domain.events import Notice, TurnEvent
from bot.domain.ids import SessionId
from bot.metrics import Metrics
from bot.ports import StorageUnavailable
from tests.fakes.scripted_provider import PAID, ScriptedProvider, text
from tests.fakes.stop_signal import FakeStop
from tests.fakes.stores import Memory, MemoryAudit, MemoryLedger
from tests.fixtures_turn import ASK, Outage

REQUEST = CompleteRequest(system="s", messages=())


class Till:
    """A purse over memory, and one turn's spender."""

    def __init__(self, *providers: Provider, daily_usd_micros: int = 0) -> None:
        self.memory = Memory()
        self.rows = MemoryLedger(self.memory)
        self.ledger = Outage(self.rows)
        self.metrics = Metrics()
        self.events: list[TurnEvent] = []
        limits = BudgetLimits(daily_usd_micros)
        audit = MemoryAudit(self.memory)
        self.purse = Purse(Rounds(providers), self.ledger, audit, limits, self.metrics)
        self.spender: Spender = self.purse.spender(ASK, SessionId("s1"), "investigate")

    async def round(self, number: int = 1):  # type: ignore[no-untyped-def]
        return await self.spender.round(REQUEST, number, self.events.append, "", FakeStop())


async def test_a_round_is_one_row_with_its_price_and_one_line_of_the_trail() -> None:
    till = Till(ScriptedProvider([text("x", usage=Usage(100, 50, 20, 10))], "a", price=PAID))

    record = await till.round()

    ((_, spending),) = till.rows.rows.values()
    assert spending.cost_usd_micros == record.cost_usd_micros == 100 * 3 + 15 + 75 + 10 * 15
    assert (spending.turn_id, spending.round, spending.provider) == (ASK.turn_id, 1, "a")
    (row,) = till.memory.trail
    assert (row.kind, row.body["cost_usd_micros"]) == (AuditKind.MODEL_CALL, 540)
    assert (
        till.metrics.registry.get_sample_value("kortex_spent_usd_micros_total", {"provider": "a"})
        == 540
    )


async def test_an_unknown_price_is_written_down_as_unknown() -> None:
    till = Till(ScriptedProvider([text("x")], price=None))

    await till.round()

    ((_, spending),) = till.rows.rows.values()
    assert spending.cost_usd_micros is None


async def test_a_round_nobody_answered_costs_nothing_and_is_no_row() -> None:
    till = Till(ScriptedProvider([[ErrorChunk(ErrorKind.AUTH, "401")]]))

    record = await till.round()

    assert record.error is ErrorKind.AUTH
    assert (till.rows.rows, till.memory.trail) == ({}, [])


async def test_the_round_that_crosses_the_limit_ends_and_the_next_asks_only_free_ones() -> None:
    paid = ScriptedProvider([text("dear")], "paid", price=PAID)
    free = ScriptedProvider([text("free")], "free")
    till = Till(paid, free, daily_usd_micros=300)

    first, second = await till.round(1), await till.round(2)

    assert (first.provider, second.provider) == ("paid", "free")
    assert first.notices == ()
    assert second.notices[0] == SPENT
    assert Notice(SPENT) in till.events
    refused = [e for e in till.memory.trail if e.kind is AuditKind.BUDGET_REFUSED]
    assert [e.body["round"] for e in refused] == [2]


async def test_with_nobody_free_a_spent_budget_is_the_reason() -> None:
    till = Till(ScriptedProvider([text("dear")], price=PAID), daily_usd_micros=1)
    await till.round(1)

    record = await till.round(2)

    assert (record.out_of_budget, record.provider) == (True, "")


async def test_a_round_that_could_not_be_written_down_is_not_bought_again() -> None:
    paid = ScriptedProvider([text("dear")], price=PAID)
    till = Till(paid)
    till.ledger.broken = {"record"}
    with pytest.raises(StorageUnavailable):
        await till.round()
    till.ledger.broken = set()

    record = await till.round()

    assert (record.text, len(paid.requests), len(till.rows.rows)) == ("dear", 1, 1)
    assert len(till.events) == 2


async def test_when_the_ledger_cannot_be_read_nobody_is_asked() -> None:
    paid = ScriptedProvider([text("dear")], price=PAID)
    till = Till(paid)
    till.ledger.broken = {"spent_today"}

    with pytest.raises(StorageUnavailable):
        await till.round()

    assert paid.requests == []
