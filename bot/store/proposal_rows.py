"""A proposal as a row of its table, and which rows' cards are to be painted, and by whom.

Every write that changes what a card has to show raises `card_wanted` in its own transaction
(`REPAINT`); `card_shown` follows once that much is known to stand in the chat.
"""

from collections.abc import Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from pydantic import TypeAdapter

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
from bot.domain.proposal import Proposal, ProposalState, Vote
from bot.ports.proposals import CardClaim
from bot.store.columns import json_text
from bot.store.database import Database
from bot.store.dialect import Connection, seconds_ago
from bot.store.tables import proposals

_VOTES = TypeAdapter(tuple[Vote, ...])

REPAINT: dict[str, Any] = {"card_wanted": proposals.c.card_wanted + 1}
# After this long nobody looks at the thread any more, and its place has been gone all the time.
_GIVEN_UP_S = 7 * 24 * 3600.0
# Written out, so that the partial index serves it.
_DIFFERS = sa.text("card_shown < card_wanted")


def votes_text(votes: tuple[Vote, ...]) -> str:
    """As it is stored; equal votes are equal text."""
    return _VOTES.dump_json(votes).decode()


def values_of(proposal: Proposal) -> dict[str, Any]:
    """The values of its columns."""
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
        "confirm_roles": json_text(list(proposal.confirm_roles)),
        "four_eyes": proposal.four_eyes,
        "state": proposal.state.value,
        "created_at": proposal.created_at,
        "expires_at": proposal.expires_at,
        "card_ts": proposal.card_ts,
        "decided_by": proposal.decided_by,
        "decided_at": proposal.decided_at,
        "reason": proposal.reason,
        "outcome": proposal.outcome,
        "preview": proposal.preview,
        "objects": proposal.objects,
        "object_names": json_text(list(proposal.object_names)),
        "fingerprint": proposal.fingerprint,
        "approvals": proposal.approvals,
        "votes": votes_text(proposal.votes),
        "action_roles": json_text(list(proposal.action_roles)),
        "supersedes": proposal.supersedes,
        "confirm_dialog": proposal.confirm_dialog,
        "card_wanted": 1,
        "channel_name": proposal.channel_name,
    }


def proposal_of(row: sa.Row[Any]) -> Proposal:
    """The proposal of a row."""
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
        confirm_roles=tuple(orjson.loads(row.confirm_roles)),
        four_eyes=row.four_eyes,
        state=ProposalState(row.state),
        created_at=row.created_at,
        expires_at=row.expires_at,
        card_ts=None if row.card_ts is None else MessageTs(row.card_ts),
        decided_by=None if row.decided_by is None else UserId(row.decided_by),
        decided_at=row.decided_at,
        reason=row.reason,
        outcome=row.outcome,
        preview=row.preview,
        objects=row.objects,
        object_names=tuple(orjson.loads(row.object_names)),
        fingerprint=row.fingerprint,
        approvals=row.approvals,
        votes=_VOTES.validate_json(row.votes),
        action_roles=tuple(orjson.loads(row.action_roles)),
        supersedes=row.supersedes,
        confirm_dialog=row.confirm_dialog,
        channel_name=row.channel_name,
    )


class StoredCards:
    """Cards as columns of their proposals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, proposal_id: ProposalId, for_s: float) -> CardClaim | None:
        """One UPDATE: whoever wins it paints."""

        async def work(connection: Connection) -> CardClaim | None:
            won = await connection.execute(
                proposals.update()
                .where(proposals.c.id == proposal_id, _DIFFERS, _is_free())
                .values(card_due_at=seconds_ago(-for_s), card_tries=proposals.c.card_tries + 1)
                .returning(proposals)
            )
            row = won.first()
            if row is None:
                return None
            return CardClaim(proposal_of(row), row.card_wanted, row.card_due_at, row.card_tries)

        return await self._database.transact(work)

    async def showed(self, claim: CardClaim, ts: MessageTs) -> None:
        """True, unless another has painted meanwhile: then nobody knows which came last."""

        async def work(connection: Connection) -> None:
            kept = await connection.execute(
                _claimed(claim).values(
                    card_ts=ts, card_shown=claim.wanted, card_due_at=None, card_tries=0
                )
            )
            if kept.rowcount == 0:
                await connection.execute(
                    proposals.update()
                    .where(proposals.c.id == claim.proposal.id)
                    .values({"card_ts": ts, **REPAINT})
                )

        await self._database.transact(work)

    async def failed(self, claim: CardClaim, again_s: float) -> None:
        """Free from then on."""

        async def work(connection: Connection) -> None:
            await connection.execute(_claimed(claim).values(card_due_at=seconds_ago(-again_s)))

        await self._database.transact(work)

    async def due(self, limit: int) -> Sequence[ProposalId]:
        """Longest waiting first."""

        async def work(connection: Connection) -> Sequence[ProposalId]:
            found = await connection.scalars(
                sa.select(proposals.c.id)
                .where(_DIFFERS, _is_free(), proposals.c.created_at > seconds_ago(_GIVEN_UP_S))
                .order_by(proposals.c.card_due_at, proposals.c.id)
                .limit(limit)
            )
            return [ProposalId(each) for each in found]

        return await self._database.fetch(work)

    async def pressed(self, proposal_id: ProposalId, ts: MessageTs) -> None:
        """The first message stays the card's; one that waits for another try waits no longer."""

        async def work(connection: Connection) -> None:
            this = proposals.c.id == proposal_id
            await connection.execute(
                proposals.update().where(this, proposals.c.card_ts.is_(None)).values(card_ts=ts)
            )
            waits = proposals.c.card_tries > 1
            await connection.execute(
                proposals.update().where(this, _DIFFERS, waits).values(card_due_at=None)
            )

        await self._database.transact(work)


def _is_free() -> sa.ColumnElement[bool]:
    return proposals.c.card_due_at.is_(None) | (proposals.c.card_due_at <= seconds_ago(0))


def _claimed(claim: CardClaim) -> sa.Update:
    return proposals.update().where(
        proposals.c.id == claim.proposal.id, proposals.c.card_due_at == claim.until
    )
