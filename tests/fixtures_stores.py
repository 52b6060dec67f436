"""One set of stores for a test: in memory, on SQLite, on PostgreSQL; the same contract for all.

Import `stores` by name and list it in `__all__`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.llm.messages import Usage
from bot.domain.audit import AuditKind
from bot.domain.ids import SessionId, TurnId, UserId
from bot.domain.session import Ask
from bot.ports.audit_log import AuditLog
from bot.ports.feedback import Feedback
from bot.ports.ingested_events import EventStore
from bot.ports.ledger import Ledger, LedgerEntry, Reservation
from bot.ports.proposals import ProposalStore
from bot.ports.sessions import SessionStore
from bot.store.access_tables import installations
from bot.store.audit import StoredAudit
from bot.store.database import Database
from bot.store.feedback import StoredFeedback
from bot.store.ingested_events import StoredEvents
from bot.store.ledger import StoredLedger
from bot.store.proposal_rows import StoredCards
from bot.store.proposals import StoredProposals
from bot.store.sessions import StoredSessions
from bot.store.tables import audit, proposals, tickets
from tests.fakes.cards import MemoryCards
from tests.fakes.feedback import MemoryFeedback
from tests.fakes.stores import (
    Memory,
    MemoryAudit,
    MemoryEvents,
    MemoryLedger,
    MemoryProposals,
    MemorySessions,
)
from tests.fixtures_actions import LapsingCards
from tests.fixtures_database import new_database
from tests.held_connection import reading, writing

ROUND = LedgerEntry(
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
HELD = Reservation(
    "r1", SessionId("session:1"), TurnId("turn:1"), UserId("U1"), "C1", usd_micros=600, tokens=50
)


class LapsingStoredCards(StoredCards):
    """Cards whose claims a test can let lapse."""

    async def lapse(self) -> None:
        """So much time passes that no claim holds any more."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(proposals.update().values(card_due_at=None))

        await self._database.transact(work)


@dataclass
class Stores:
    """The ports, and what was written to the audit log."""

    sessions: SessionStore
    proposals: ProposalStore
    cards: LapsingCards
    audit: AuditLog
    ledger: Ledger
    events: EventStore
    feedback: Feedback
    audit_kinds: Callable[[], Awaitable[list[AuditKind]]]


def in_memory() -> Stores:
    """The fakes."""
    memory = Memory()
    sessions = MemorySessions(memory)
    proposals_in_memory = MemoryProposals(memory)

    async def audit_kinds() -> list[AuditKind]:
        return memory.kinds()

    return Stores(
        sessions,
        proposals_in_memory,
        MemoryCards(proposals_in_memory, memory.now),
        MemoryAudit(memory),
        MemoryLedger(memory),
        MemoryEvents(),
        MemoryFeedback(memory, sessions),
        audit_kinds,
    )


def stored(database: Database) -> Stores:
    """The repositories."""

    async def audit_kinds() -> list[AuditKind]:
        async with reading(database) as connection:
            found = await connection.scalars(sa.select(audit.c.kind).order_by(audit.c.seq))
            return [AuditKind(kind) for kind in found]

    return Stores(
        StoredSessions(database),
        StoredProposals(database),
        LapsingStoredCards(database),
        StoredAudit(database),
        StoredLedger(database),
        StoredEvents(database),
        StoredFeedback(database),
        audit_kinds,
    )


async def installed_too(database: Database, team: str) -> None:
    """Another workspace that installed the app: a tenant beside home."""
    nothing = sa.text("0")
    required = {c.name: nothing for c in installations.c if not c.nullable and c.name != "team"}
    async with writing(database) as connection:
        await connection.execute(installations.insert().values(team=team, **required))


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """The stores, once in memory and once on each database."""
    if request.param == "memory":
        yield in_memory()
        return
    async with new_database(request.param, tmp_path) as url:
        database = await Database.open(url)
        yield stored(database)
        await database.close()


async def stand_in_line(database: Database, ask: Ask) -> None:
    """Give a turn its place in its thread, waiting."""
    place = {"id": ask.turn_id, "thread": ask.place.key, "ts": ask.ts}
    async with writing(database) as connection:
        await connection.execute(tickets.insert(), place | {"state": "waiting", "owner": "a"})
