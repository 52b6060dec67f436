"""A proposal as a row of its table, and the cards to draw, with their painters.

Every write that changes a card's content raises `card_wanted` in its own transaction (`REPAINT`);
`card_shown` follows once the chat is known to show it.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

import orjson
import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.ids import ChannelId, MessageTs, Person, Place, ProposalId, TeamId
from bot.domain.proposal import Proposal, ProposalState, Vote
from bot.ports.proposals import CardClaim
from bot.store.columns import json_text
from bot.store.database import Database
from bot.store.dialect import MOST, seconds_ago
from bot.store.tables import proposals

_VOTES = TypeAdapter(tuple[Vote, ...])
_LISTS = ("confirm_roles", "action_roles", "object_names")  # as JSON
# Every other field has a column of its name: one without a column is an error at the first row.
_AS_THEY_ARE = tuple(
    f.name
    for f in fields(Proposal)
    if f.name not in {"place", "asked_by", "state", "votes", *_LISTS}
)

REPAINT: dict[str, Any] = {"card_wanted": proposals.c.card_wanted + 1}
# After this long no person reads the thread any more, and its place was gone the whole time.
_GIVEN_UP_S = 7 * 24 * 3600.0
# Written out, so that the partial index serves it.
_DIFFERS = sa.text("card_shown < card_wanted")


def votes_text(votes: tuple[Vote, ...]) -> str:
    """As it is stored; equal votes are equal text."""
    return _VOTES.dump_json(votes).decode()


def values_of(proposal: Proposal) -> dict[str, Any]:
    return {
        **{name: getattr(proposal, name) for name in _AS_THEY_ARE},
        **{name: json_text(list(getattr(proposal, name))) for name in _LISTS},
        "team": proposal.place.team,
        "channel": proposal.place.channel,
        "thread_ts": proposal.place.thread_ts,
        "asker_team": proposal.asked_by.team,
        "asker_user": proposal.asked_by.user,
        "state": proposal.state.value,
        "votes": votes_text(proposal.votes),
        "card_wanted": 1,
    }


def proposal_of(row: sa.Row[Any]) -> Proposal:
    own = {name: getattr(row, name) for name in _AS_THEY_ARE}
    lists: dict[str, Any] = {name: tuple(orjson.loads(getattr(row, name))) for name in _LISTS}
    return Proposal(
        **own,
        **lists,
        place=Place(row.team, row.channel, row.thread_ts),
        asked_by=Person(row.asker_team, row.asker_user),
        state=ProposalState(row.state),
        votes=_VOTES.validate_json(row.votes),
    )


class StoredCards:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, proposal_id: ProposalId, for_s: float) -> CardClaim | None:
        """One UPDATE: the winner paints."""

        async def work(connection: AsyncConnection) -> CardClaim | None:
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
        """True, unless another replica has painted as well: then the last one is unknown."""

        async def work(connection: AsyncConnection) -> None:
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

        await self._database.execute(_claimed(claim).values(card_due_at=seconds_ago(-again_s)))

    async def due(self, limit: int) -> Sequence[ProposalId]:
        """Longest waiting first."""

        found = await self._database.scalars(DUE, {"most": limit})
        return [ProposalId(each) for each in found]

    async def in_reach(self, team: TeamId, channel: ChannelId, limit: int) -> Sequence[ProposalId]:
        """Free at once, however often and how long ago they were tried; one being painted too."""
        there = (proposals.c.team == team, proposals.c.channel == channel, _DIFFERS)

        async def work(connection: AsyncConnection) -> Sequence[ProposalId]:
            await connection.execute(proposals.update().where(*there).values(card_due_at=None))
            found = await connection.scalars(
                sa.select(proposals.c.id)
                .where(*there)
                .order_by(proposals.c.created_at.desc(), proposals.c.id)
                .limit(limit)
            )
            return [ProposalId(each) for each in found]

        return await self._database.transact(work)

    async def pressed(self, proposal_id: ProposalId, ts: MessageTs) -> None:
        """The first message stays the card's; one that waits for another try waits no longer."""

        async def work(connection: AsyncConnection) -> None:
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


DUE: Final = (
    sa.select(proposals.c.id)
    .where(_DIFFERS, _is_free(), proposals.c.created_at > seconds_ago(_GIVEN_UP_S))
    .order_by(proposals.c.card_due_at, proposals.c.id)
    .limit(MOST)
)


def _claimed(claim: CardClaim) -> sa.Update:
    return proposals.update().where(
        proposals.c.id == claim.proposal.id, proposals.c.card_due_at == claim.until
    )
