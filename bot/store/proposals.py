"""`bot.ports.proposals.ProposalStore` in the database: who wins is one UPDATE on the database's clock."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import Place, ProposalId, SessionId, UserId
from bot.domain.proposal import (
    LIFETIME,
    IllegalTransition,
    Proposal,
    ProposalState,
    Vote,
    check_transition,
)
from bot.ports.proposals import Around, Decision, Departure, Verdict
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import MOST, insert_into, lock_order, now, seconds_ago
from bot.store.duplicate_orders import open_in_channel, order_in_the_way, pending_like, retired
from bot.store.proposal_context import around, of_session
from bot.store.proposal_rows import REPAINT, proposal_of, values_of, votes_text
from bot.store.tables import proposals

DUE: Final = (
    sa.select(proposals.c.id)
    .where(
        # Written out, so that the partial index serves it.
        sa.text("state = 'pending'"),
        proposals.c.expires_at <= seconds_ago(0),
    )
    .order_by(proposals.c.expires_at, proposals.c.id)
    .limit(MOST)
)
_BY_TIME: dict[ProposalState, sa.ColumnElement[bool]] = {
    ProposalState.CONFIRMED: proposals.c.expires_at > now(),
    ProposalState.REJECTED: proposals.c.expires_at > now(),
    ProposalState.SUPERSEDED: proposals.c.expires_at > now(),
    ProposalState.EXPIRED: proposals.c.expires_at <= now(),
}
# One UPDATE confirms only a proposal that needs one person; the others count votes.
_BY_ONE: dict[ProposalState, sa.ColumnElement[bool]] = {
    ProposalState.CONFIRMED: proposals.c.approvals <= 1,
}


class StoredProposals:
    """Proposals as rows. `mark` is called before each order is sent: `bot.store.restore_guard.RestoreGuard.mark`."""

    def __init__(
        self, database: Database, mark: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._database = database
        self._mark = mark

    async def create(self, proposal: Proposal, audit: AuditEvent) -> Proposal:
        """Insert with its audit row under the lock of that order, or return the existing one."""

        async def work(connection: AsyncConnection) -> Proposal:
            await lock_order(connection, proposal.digest)
            if (kept := await _find(connection, proposal.id)) is not None:
                return kept
            if (same := await open_in_channel(connection, proposal)) is not None:
                return same
            inserted = await connection.execute(
                insert_into(connection, proposals)
                .values(values_of(proposal))
                .on_conflict_do_nothing(index_elements=["id"])
                .returning(proposals.c.id)
            )
            if inserted.first() is not None:
                await append_audit(connection, audit)
            kept = await _find(connection, proposal.id)
            return kept or proposal

        return await self._database.transact(work)

    async def now(self) -> datetime:
        return await self._database.now()

    async def get(self, proposal_id: ProposalId) -> Proposal | None:
        async def work(connection: AsyncConnection) -> Proposal | None:
            return await _find(connection, proposal_id)

        return await self._database.fetch(work)

    async def decide(
        self, proposal_id: ProposalId, decision: Decision, audit: AuditEvent
    ) -> Verdict | None:
        """One UPDATE; the audit row only for the winner, in the same transaction."""
        check_transition(ProposalState.PENDING, decision.to)

        async def work(connection: AsyncConnection) -> Verdict | None:
            if (row := await _decide(connection, proposal_id, decision)) is not None:
                await append_audit(connection, audit)
                return Verdict(won=True, proposal=proposal_of(row))
            if decision.to is ProposalState.CONFIRMED:
                voted = await _vote(connection, proposal_id, decision, audit)
                if voted is not None:
                    return voted
            return await _verdict_afterwards(connection, proposal_id, decision.key)

        return await self._database.transact(work)

    async def supersede(
        self,
        proposal_id: ProposalId,
        decision: Decision,
        audit: AuditEvent,
        successor: Proposal,
        created: AuditEvent,
    ) -> Verdict | None:
        """One UPDATE and one INSERT: either both, or neither."""
        check_transition(ProposalState.PENDING, decision.to)

        async def work(connection: AsyncConnection) -> Verdict | None:
            if (row := await _decide(connection, proposal_id, decision)) is None:
                return await _verdict_afterwards(connection, proposal_id, decision.key)
            begins = row.decided_at
            fresh = replace(successor, created_at=begins, expires_at=begins + LIFETIME)
            await connection.execute(proposals.insert().values(values_of(fresh)))
            await append_audit(connection, audit)
            await append_audit(connection, created)
            return Verdict(won=True, proposal=proposal_of(row))

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
        if after is ProposalState.DISPATCHING:
            raise IllegalTransition(f"{proposal_id}: only begin_dispatch makes it dispatching")
        values: dict[str, Any] = {"state": after.value, "outcome": outcome}

        async def work(connection: AsyncConnection) -> bool:
            return await _moved(connection, proposal_id, before, values, audit)

        return await self._database.transact(work, again=False)

    async def begin_dispatch(self, proposal_id: ProposalId, audit: AuditEvent) -> Departure:
        """One compare-and-set with its audit row, under the lock of that order; then the mark.

        Not repeated when the connection is lost, as `advance`. Without the mark nothing may be sent.
        The mark is tried first: where it fails, the order stays confirmed and is tried again.
        """
        if self._mark is not None:
            await self._mark()
        before = ProposalState.CONFIRMED
        values: dict[str, Any] = {
            "state": ProposalState.DISPATCHING.value,
            "outcome": "",
            "dispatched_at": now(),
        }

        async def work(connection: AsyncConnection) -> Departure:
            row = await _find(connection, proposal_id)
            if row is None or row.state is not before:
                return Departure(is_ours=False)
            await lock_order(connection, row.digest)
            if (same := await order_in_the_way(connection, row)) is not None:
                return Departure(is_ours=False, same=same)
            return Departure(await _moved(connection, proposal_id, before, values, audit))

        departure = await self._database.transact(work, again=False)
        if departure.is_ours and self._mark is not None:
            await self._mark()
        return departure

    async def same_order(self, proposal_id: ProposalId) -> Proposal | None:
        """The latest that went out."""

        async def work(connection: AsyncConnection) -> Proposal | None:
            row = await _find(connection, proposal_id)
            return None if row is None else await order_in_the_way(connection, row)

        return await self._database.fetch(work)

    async def retire_same(
        self, proposal_id: ProposalId, outcome: str, event: Callable[[Proposal], AuditEvent]
    ) -> Sequence[ProposalId]:
        """All in one transaction, each by its own compare-and-set."""

        async def work(connection: AsyncConnection) -> Sequence[ProposalId]:
            row = await _find(connection, proposal_id)
            found = [] if row is None else await pending_like(connection, row)
            over = [each for each in found if await order_in_the_way(connection, each)]
            for each in over:
                await connection.execute(retired(each, outcome, REPAINT))
            for each in over:
                await append_audit(connection, event(each))
            return [each.id for each in over]

        return await self._database.transact(work)

    async def due(self, limit: int) -> Sequence[ProposalId]:
        found = await self._database.scalars(DUE, {"most": limit})
        return [ProposalId(each) for each in found]

    async def of_session(
        self, session: SessionId, state: ProposalState | None = None
    ) -> Sequence[Proposal]:
        async def work(connection: AsyncConnection) -> Sequence[Proposal]:
            return await of_session(connection, session, state)

        return await self._database.fetch(work)

    async def around(
        self,
        session: SessionId,
        place: Place,
        products: Collection[str] | None,
        seconds: float,
        limit: int,
    ) -> Around:
        """By three indexes, on one connection: a turn waits for it once."""

        async def work(connection: AsyncConnection) -> Around:
            return await around(connection, session, place, products, seconds, limit)

        return await self._database.fetch(work)

    async def dispatches_since(self, action: str, product: str, seconds: float) -> int:
        return int(
            await self._database.scalar(
                sa.select(sa.func.count()).where(
                    proposals.c.action == action,
                    proposals.c.product == product,
                    proposals.c.dispatched_at > seconds_ago(seconds),
                )
            )
        )


async def _moved(
    connection: AsyncConnection,
    proposal_id: ProposalId,
    before: ProposalState,
    values: Mapping[str, Any],
    audit: AuditEvent,
) -> bool:
    moved = await connection.execute(
        proposals.update()
        .where(proposals.c.id == proposal_id, proposals.c.state == before.value)
        .values({**values, **REPAINT})
    )
    if moved.rowcount != 1:
        return False
    await append_audit(connection, audit)
    return True


async def _find(connection: AsyncConnection, proposal_id: ProposalId) -> Proposal | None:
    found = await connection.execute(sa.select(proposals).where(proposals.c.id == proposal_id))
    row = found.first()
    return None if row is None else proposal_of(row)


async def _decide(
    connection: AsyncConnection, proposal_id: ProposalId, decision: Decision
) -> sa.Row[Any] | None:
    """The compare-and-set that picks the one winner; None for everybody else."""
    won = await connection.execute(
        proposals.update()
        .where(
            proposals.c.id == proposal_id,
            proposals.c.state == ProposalState.PENDING.value,
            _BY_TIME.get(decision.to, sa.true()),
            _BY_ONE.get(decision.to, sa.true()),
        )
        .values(
            state=decision.to.value,
            decided_by=decision.by,
            decided_at=now(),
            decision_key=decision.key,
            reason=decision.reason,
            **REPAINT,
        )
        .returning(proposals)
    )
    row: sa.Row[Any] | None = won.first()
    return row


async def _vote(
    connection: AsyncConnection, proposal_id: ProposalId, decision: Decision, audit: AuditEvent
) -> Verdict | None:
    """Count one person's confirmation; the last one wanted decides. None: no vote is open."""
    # The row's lock makes voters take turns; on SQLite the transaction has the only writer.
    found = await connection.execute(
        sa.select(proposals, now().label("read_at"))
        .where(
            proposals.c.id == proposal_id,
            proposals.c.state == ProposalState.PENDING.value,
            proposals.c.approvals > 1,
            proposals.c.expires_at > now(),
        )
        .with_for_update()
    )
    if (row := found.first()) is None:
        return None
    before = proposal_of(row)
    mine = next((vote for vote in before.votes if vote.by == decision.by), None)
    if mine is not None:
        return Verdict(won=False, proposal=before, voted=mine.key == decision.key)
    votes = (*before.votes, Vote(UserId(decision.by), row.read_at, decision.key))
    decides = len(votes) >= before.approvals
    changes: dict[str, Any] = {"votes": votes_text(votes), **REPAINT}
    if decides:
        changes |= {
            "state": decision.to.value,
            "decided_by": decision.by,
            "decided_at": row.read_at,
            "decision_key": decision.key,
        }
    changed = await connection.execute(
        proposals.update()
        .where(proposals.c.id == proposal_id, proposals.c.votes == row.votes)
        .values(changes)
        .returning(proposals)
    )
    after = proposal_of(changed.one())
    await append_audit(connection, _voted(audit, decision, len(votes), before.approvals))
    if decides:
        await append_audit(connection, audit)
    return Verdict(won=decides, proposal=after, voted=not decides)


def _voted(audit: AuditEvent, decision: Decision, number: int, wanted: int) -> AuditEvent:
    return replace(
        audit,
        kind=AuditKind.PROPOSAL_VOTED,
        body={**audit.body, "vote": number, "of": wanted},
        key=f"voted:{decision.key}",
    )


async def _verdict_afterwards(
    connection: AsyncConnection, proposal_id: ProposalId, key: str
) -> Verdict | None:
    found = await connection.execute(sa.select(proposals).where(proposals.c.id == proposal_id))
    row = found.first()
    if row is None:
        return None
    after = proposal_of(row)
    won = row.decision_key == key
    return Verdict(won, after, voted=not won and any(vote.key == key for vote in after.votes))
