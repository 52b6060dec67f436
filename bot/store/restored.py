"""End the open work of a restored copy, in one transaction: nothing is sent again.

The original continued after the copy: open proposals may have been decided and carried out, turns
answered, alerts shown. Their outcome is unknown here, so no message reports one; only cards that
people can still see show that they are over.
"""

from dataclasses import dataclass
from typing import Final

import orjson
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.actions.orders import Outcome, ended
from bot.domain.alerts import Investigation
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.proposal import OPEN, Proposal, ProposalState
from bot.domain.session import TurnState
from bot.store.alert_tables import alert_threads
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import now
from bot.store.ledger_tables import reservations
from bot.store.proposal_rows import REPAINT, proposal_of
from bot.store.tables import (
    accepted,
    proposals,
    replicas,
    tickets,
    turn_steps,
    turns,
    undelivered,
    watches,
)

_SAID: Final = (
    "restored: this database is a copy from a time when the proposal was open. Its later state "
    "is unknown, so nothing is sent"
)
UNKNOWN: Final = Outcome(ProposalState.UNKNOWN, orjson.dumps({"error": _SAID}).decode())
_NOT_ASKED: Final = "the database was restored from a copy"


@dataclass(frozen=True, slots=True)
class Closed:
    proposals: int
    turns: int


async def close_restored(database: Database) -> Closed:
    """End the open work, with a row of the audit log each. Raises StorageUnavailable.

    The engine's own work must be ended before, and no replica may be serving.
    """

    async def work(connection: AsyncConnection) -> Closed:
        found = await _proposals(connection)
        running = await connection.execute(
            turns.update()
            .where(turns.c.state == TurnState.RUNNING.value)
            .values(state=TurnState.FAILED.value, ended_at=now())
        )
        for owed in (accepted, tickets, turn_steps, undelivered, watches, reservations, replicas):
            await connection.execute(owed.delete())
        await _alerts(connection)
        closed = Closed(len(found), running.rowcount)
        for row in found:
            await append_audit(connection, ended(row, UNKNOWN, "restore"))
        body = {"proposals": closed.proposals, "turns": closed.turns}
        await append_audit(connection, AuditEvent(AuditKind.RESTORED, "restore", dict(body)))
        return closed

    return await database.transact(work, again=False)


async def _proposals(connection: AsyncConnection) -> list[Proposal]:
    closed = await connection.execute(
        proposals.update()
        .where(proposals.c.state.in_(state.value for state in OPEN))
        .values(state=UNKNOWN.state.value, outcome=UNKNOWN.text, **REPAINT)
        .returning(proposals)
    )
    found = [proposal_of(row) for row in closed]
    # A card that was never seen is not posted now.
    unseen = proposals.c.card_ts.is_(None)
    await connection.execute(
        proposals.update().where(unseen).values(card_shown=proposals.c.card_wanted)
    )
    return found


async def _alerts(connection: AsyncConnection) -> None:
    await connection.execute(
        alert_threads.update().values(shown=alert_threads.c.wanted, due_at=None)
    )
    due = alert_threads.c.investigation == Investigation.DUE.value
    left_out = {"investigation": Investigation.LEFT_OUT.value, "left_out": _NOT_ASKED}
    await connection.execute(alert_threads.update().where(due).values(left_out))
