"""Admins are alerted once a day, by any replica, and again only if none was reached."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.budget_report import BudgetAlert
from bot.domain.audit import AuditKind
from bot.domain.budget import BudgetLimits, is_alert_due, projected_usd_micros
from bot.ports.ledger import LedgerEntry
from bot.store import ledger
from bot.store.database import Database
from bot.store.ledger import StoredAlertDays
from tests.fakes.stores import Memory, MemoryAudit, MemoryLedger
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import ROUND

__all__ = ["database", "database_url", "other"]

NOON = datetime(2026, 4, 7, 12, tzinfo=UTC)
LIMITS = BudgetLimits(daily_usd_micros=2000, alert_at_pct=75)


class Office:
    """Two replicas over one database, and the admins they inform."""

    def __init__(self, *databases: Database, limits: BudgetLimits = LIMITS) -> None:
        self.memory = Memory(now=lambda: NOON)
        self.ledger = MemoryLedger(self.memory)
        self.told: list[str] = []
        self.reachable = 2
        self.replicas = [
            BudgetAlert(
                self.ledger, StoredAlertDays(d), MemoryAudit(self.memory), limits, self._tell
            )
            for d in databases
        ]

    async def _tell(self, text: str) -> int:
        self.told.append(text)
        return self.reachable

    async def tick(self) -> None:
        for replica in self.replicas:
            await replica.run()


async def test_below_the_threshold_no_alert_is_sent(database: Database) -> None:
    office = Office(database)
    await office.tick()
    assert office.told == []


async def test_at_the_threshold_admins_get_one_alert_a_day_from_all_replicas(
    database: Database, other: Database
) -> None:
    office = Office(database, other)
    await office.ledger.record(ROUND)  # 1,500 of 2,000

    await office.tick()
    await office.tick()

    assert len(office.told) == 1
    assert "$0.00 of $0.00 is used (75 %)" in office.told[0]
    assert office.memory.kinds() == [AuditKind.BUDGET_ALERT]

    office.memory.now = lambda: NOON + timedelta(days=1)
    await office.tick()
    assert len(office.told) == 1
    await office.ledger.record(_tomorrow())
    await office.tick()
    assert len(office.told) == 2


def _tomorrow() -> LedgerEntry:
    return replace(ROUND, round=2)


async def test_an_undelivered_alert_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(database)
    office.reachable = 0
    await office.ledger.record(ROUND)

    await office.tick()
    await office.tick()
    assert len(office.told) == 1

    monkeypatch.setattr(ledger, "CLAIM_S", -1.0)
    office.reachable = 1
    await office.tick()
    await office.tick()
    assert len(office.told) == 2


async def test_without_a_daily_limit_no_alert_is_sent(database: Database) -> None:
    office = Office(database, limits=BudgetLimits())
    await office.ledger.record(ROUND)
    await office.tick()
    assert office.told == []


@given(limit=st.integers(1, 10**9), used=st.integers(0, 10**9), pct=st.integers(1, 100))
def test_the_alert_is_due_from_the_configured_percentage(limit: int, used: int, pct: int) -> None:
    due = is_alert_due(BudgetLimits(daily_usd_micros=limit, alert_at_pct=pct), used)
    assert due == (used / limit * 100 >= pct or used * 100 == limit * pct)


def test_the_projection_continues_the_days_pace() -> None:
    assert projected_usd_micros(1000, 21_600) == 4000
    assert projected_usd_micros(0, 0) == 0


async def test_each_workspaces_admins_get_their_own_budget_alert(database: Database) -> None:
    office, days = Office(database), StoredAlertDays(database)
    await office.ledger.record(ROUND)
    audit = MemoryAudit(office.memory)
    for tenant in ("TACME", "", "TACME", "TOTHER"):
        await BudgetAlert(office.ledger, days, audit, LIMITS, office._tell, tenant).run()
    assert len(office.told) == 3
    assert office.memory.kinds() == [AuditKind.BUDGET_ALERT] * 3
