"""`bot.ports.ProposalStore` in the database: who wins is one UPDATE on the database's clock."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent
from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    TurnId,
    UserId,
)
from bot.domain.proposal import Proposal, ProposalState, check_transition
from bot.ports import Decision, Verdict
from bot.store import json_text
from bot.store.audit import append_audit
from bot.store.dialect import insert_into, now, seconds_ago
from bot.store.engine import Database
from bot.store.tables import proposals

_BY_TIME: dict[ProposalState, sa.ColumnElement[bool]] = {
    ProposalState.CONFIRMED: proposals.c.expires_at > now(),
    ProposalState.REJECTED: proposals.c.expires_at > now(),
    ProposalState.EXPIRED: proposals.c.expires_at <= now(),
}


class StoredProposals:
    """Proposals as rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, proposal: Proposal, audit: AuditEvent) -> Proposal:
        """Insert with its audit row, or return the row already there under that id."""

        async def work(connection: AsyncConnection) -> Proposal:
            inserted = await connection.execute(
                insert_into(connection, proposals)
                .values(_row(proposal))
                .on_conflict_do_nothing(index_elements=["id"])
                .returning(proposals.c.id)
            )
            if inserted.first() is not None:
                await append_audit(connection, audit)
            kept = await _find(connection, proposal.id)
            return kept or proposal

        return await self._database.transact(work)

    async def get(self, proposal_id: ProposalId) -> Proposal | None:
        """The row now."""

        async def work(connection: AsyncConnection) -> Proposal | None:
            return await _find(connection, proposal_id)

        return await self._database.fetch(work)

    async def decide(
        self, proposal_id: ProposalId, decision: Decision, audit: AuditEvent
    ) -> Verdict | None:
        """One UPDATE; the audit row only for the winner, in the same transaction."""
        check_transition(ProposalState.PENDING, decision.to)

        async def work(connection: AsyncConnection) -> Verdict | None:
            won = await connection.execute(
                proposals.update()
                .where(
                    proposals.c.id == proposal_id,
                    proposals.c.state == ProposalState.PENDING.value,
                    _BY_TIME.get(decision.to, sa.true()),
                )
                .values(
                    state=decision.to.value,
                    decided_by=decision.by,
                    decided_at=now(),
                    decision_key=decision.key,
                    reason=decision.reason,
                )
                .returning(proposals)
            )
            if (row := won.first()) is not None:
                await append_audit(connection, audit)
                return Verdict(won=True, proposal=_proposal(row))
            return await _verdict_afterwards(connection, proposal_id, decision.key)

        return await self._database.transact(work)

    async def advance(
        self,
        proposal_id: ProposalId,
        before: ProposalState,
        after: ProposalState,
        outcome: str,
        audit: AuditEvent,
    ) -> bool:
        """One compare-and-set with its audit row.

        Not repeated when the connection is lost: whether the first try took effect must be read.
        """
        check_transition(before, after)
        values: dict[str, Any] = {"state": after.value, "outcome": outcome}
        if after is ProposalState.DISPATCHING:
            values["dispatched_at"] = now()
        async with self._database.write() as connection:
            moved = await connection.execute(
                proposals.update()
                .where(proposals.c.id == proposal_id, proposals.c.state == before.value)
                .values(values)
            )
            if moved.rowcount != 1:
                return False
            await append_audit(connection, audit)
            return True

    async def set_card(self, proposal_id: ProposalId, ts: MessageTs) -> None:
        """Remember the card's message."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(
                proposals.update().where(proposals.c.id == proposal_id).values(card_ts=ts)
            )

        await self._database.transact(work)

    async def due(self, limit: int) -> Sequence[ProposalId]:
        """Pending ones past their time, longest past first."""

        async def work(connection: AsyncConnection) -> Sequence[ProposalId]:
            found = await connection.scalars(
                sa.select(proposals.c.id)
                .where(
                    # Written out, so that the partial index serves it.
                    sa.text("state = 'pending'"),
                    proposals.c.expires_at <= seconds_ago(0),
                )
                .order_by(proposals.c.expires_at, proposals.c.id)
                .limit(limit)
            )
            return [ProposalId(each) for each in found]

        return await self._database.fetch(work)

    async def of_session(self, session: SessionId, state: ProposalState) -> Sequence[Proposal]:
        """Those of a session in one state, oldest first."""

        async def work(connection: AsyncConnection) -> Sequence[Proposal]:
            found = await connection.execute(
                sa.select(proposals)
                .where(proposals.c.session_id == session, proposals.c.state == state.value)
                .order_by(proposals.c.created_at, proposals.c.id)
            )
            return [_proposal(row) for row in found]

        return await self._database.fetch(work)

    async def dispatches_since(self, action: str, product: str, seconds: float) -> int:
        """How many of that action reached dispatch in the last seconds, over all replicas."""

        async def work(connection: AsyncConnection) -> int:
            found = await connection.execute(
                sa.select(sa.func.count()).where(
                    proposals.c.action == action,
                    proposals.c.product == product,
                    proposals.c.dispatched_at > seconds_ago(seconds),
                )
            )
            return found.scalar_one()

        return await self._database.fetch(work)


async def _find(connection: AsyncConnection, proposal_id: ProposalId) -> Proposal | None:
    found = await connection.execute(sa.select(proposals).where(proposals.c.id == proposal_id))
    row = found.first()
    return None if row is None else _proposal(row)


async def _verdict_afterwards(
    connection: AsyncConnection, proposal_id: ProposalId, key: str
) -> Verdict | None:
    found = await connection.execute(sa.select(proposals).where(proposals.c.id == proposal_id))
    row = found.first()
    if row is None:
        return None
    return Verdict(won=row.decision_key == key, proposal=_proposal(row))


def _row(proposal: Proposal) -> dict[str, Any]:
    return {
        "id": proposal.id,
        "session_id": proposal.session_id,
        "turn_id": proposal.turn_id,
        "team": proposal.place.team,
        "channel": proposal.place.channel,
        "thread_ts": proposal.place.thread_ts,
        "asker_team": proposal.asked_by.team,
        "asker_user": proposal.asked_by.user,
        "action": proposal.action,
        "product": proposal.product,
        "params": proposal.params,
        "digest": proposal.digest,
        "rationale": proposal.rationale,
        "model_blast_radius": proposal.model_blast_radius,
        "blast_radius": proposal.blast_radius,
        "reversible": proposal.reversible,
        "untrusted_read": proposal.untrusted_read,
        "confirm_roles": json_text.dumps(list(proposal.confirm_roles)),
        "four_eyes": proposal.four_eyes,
        "state": proposal.state.value,
        "created_at": proposal.created_at,
        "expires_at": proposal.expires_at,
        "card_ts": proposal.card_ts,
        "decided_by": proposal.decided_by,
        "decided_at": proposal.decided_at,
        "reason": proposal.reason,
        "outcome": proposal.outcome,
    }


def _proposal(row: sa.Row[Any]) -> Proposal:
    return Proposal(
        id=ProposalId(row.id),
        session_id=SessionId(row.session_id),
        turn_id=TurnId(row.turn_id),
        place=Place(TeamId(row.team), ChannelId(row.channel), MessageTs(row.thread_ts)),
        asked_by=Person(TeamId(row.asker_team), UserId(row.asker_user)),
        action=row.action,
        product=row.product,
        params=row.params,
        digest=row.digest,
        rationale=row.rationale,
        model_blast_radius=row.model_blast_radius,
        blast_radius=row.blast_radius,
        reversible=row.reversible,
        untrusted_read=row.untrusted_read,
        confirm_roles=tuple(json_text.loads(row.confirm_roles)),
        four_eyes=row.four_eyes,
        state=ProposalState(row.state),
        created_at=row.created_at,
        expires_at=row.expires_at,
        card_ts=None if row.card_ts is None else MessageTs(row.card_ts),
        decided_by=None if row.decided_by is None else UserId(row.decided_by),
        decided_at=row.decided_at,
        reason=row.reason,
        outcome=row.outcome,
    )
