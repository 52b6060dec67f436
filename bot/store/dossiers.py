"""Everything on record about one session, read together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.llm.messages import Message, Role
from bot.domain.audit import AuditEntry
from bot.domain.dossier import Dossier, DossierCost, DossierTurn
from bot.domain.ids import (
    API,
    ChannelId,
    MessageTs,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    session_at,
)
from bot.domain.proposal import Proposal
from bot.ports.records import RecentThreads
from bot.store.audit_reading import PAGE_ROWS, StoredAuditReader
from bot.store.chat_tables import chat_sessions
from bot.store.database import Database
from bot.store.dialect import seconds_ago
from bot.store.ledger_tables import spending
from bot.store.proposals import StoredProposals
from bot.store.session_rows import to_evidence, to_message
from bot.store.sessions import StoredSessions
from bot.store.tables import evidence, messages, proposals, sessions, turns

INCIDENT_WITHIN = timedelta(hours=24)  # of the newest session
_PROPOSED = sa.exists().where(proposals.c.session_id == sessions.c.id)

_STATES_CAUSE = sa.exists().where(
    turns.c.session_id == sessions.c.id,
    evidence.c.turn_id == turns.c.id,
    evidence.c.tool == "core__report_findings",
    evidence.c.summary.like("cause%"),
)


@dataclass(frozen=True, slots=True)
class OtherSessions:
    """How many there are, how many of those have proposals, and the newest of these."""

    total: int
    proposed: int
    newest_proposed: Sequence[SessionId]


class Dossiers:
    """Reads only. Raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, wanted: str) -> SessionId | None:
        """The session of that id, or the newest one of that name."""

        found = await self._database.scalar(
            sa.select(sessions.c.id)
            .where(sa.or_(sessions.c.id == wanted, sessions.c.name == wanted))
            .order_by((sessions.c.id == wanted).desc(), sessions.c.active_at.desc())
            .limit(1)
        )
        return None if found is None else SessionId(found)

    async def find_at(self, channel: str, thread_ts: str) -> SessionId | None:
        """The session of that thread, in any workspace; without one, that of the direct messages
        there.
        """

        found = await self._database.scalar(
            sa.select(sessions.c.id)
            .where(sessions.c.channel == channel, sessions.c.thread_ts.in_((thread_ts, "")))
            .order_by(sessions.c.thread_ts.desc(), sessions.c.active_at.desc())
            .limit(1)
        )
        return None if found is None else SessionId(found)

    async def find_chat(self, chat: str) -> SessionId | None:
        """The session of a conversation over HTTP, by the id that its people see."""

        chats = sa.select(chat_sessions.c.channel, chat_sessions.c.thread)
        found = await self._database.first(chats.where(chat_sessions.c.id == chat))
        if found is None:
            return None
        return session_at(Place(API, ChannelId(found.channel), MessageTs(found.thread)))

    async def incident(
        self, name: str | None, *, besides: Sequence[TeamId] = ()
    ) -> SessionId | None:
        """The newest incident, of that name or of any; None where there is no session.

        Of the last day's sessions one with a proposal comes first, then one that states a cause.
        None of the teams `besides`.
        """
        named = sa.true() if name is None else sessions.c.name == name
        named &= sessions.c.team.not_in(besides)
        rank = sa.case((_PROPOSED, 0), (_STATES_CAUSE, 1), else_=2)

        async def work(connection: AsyncConnection) -> str | None:
            newest = await connection.scalar(
                sa.select(sa.func.max(sessions.c.active_at)).where(named)
            )
            if newest is None:
                return None
            found: str | None = await connection.scalar(
                sa.select(sessions.c.id)
                .where(named, sessions.c.active_at >= newest - INCIDENT_WITHIN)
                .order_by(rank, sessions.c.active_at.desc(), sessions.c.id)
                .limit(1)
            )
            return found

        found = await self._database.fetch(work)
        return None if found is None else SessionId(found)

    async def recent(self, place: Place, within: timedelta, limit: int) -> RecentThreads:
        lately = (
            (sessions.c.team == place.team)
            & (sessions.c.channel == place.channel)
            & (sessions.c.active_at >= seconds_ago(within.total_seconds()))
            & (sessions.c.id != session_at(place))
        )

        async def work(connection: AsyncConnection) -> RecentThreads:
            found = await connection.scalars(
                sa.select(sessions.c.id)
                .where(lately)
                .order_by(_PROPOSED.desc(), sessions.c.active_at.desc(), sessions.c.id)
                .limit(limit)
            )
            ids = [SessionId(each) for each in found]
            return RecentThreads(ids, await _count(connection, lately))

        return await self._database.fetch(work)

    async def others(self, session: SessionId, name: str | None, limit: int) -> OtherSessions:
        """Sessions beside that one, of the name; None: of any."""
        beside = sessions.c.id != session
        if name is not None:
            beside &= sessions.c.name == name

        async def work(connection: AsyncConnection) -> OtherSessions:
            found = await connection.scalars(
                sa.select(sessions.c.id)
                .where(beside, _PROPOSED)
                .order_by(sessions.c.active_at.desc(), sessions.c.id)
                .limit(limit)
            )
            ids = [SessionId(each) for each in found]
            proposed = await _count(connection, beside & _PROPOSED)
            return OtherSessions(await _count(connection, beside), proposed, ids)

        return await self._database.fetch(work)

    async def read(self, session_id: SessionId) -> Dossier | None:
        session = await StoredSessions(self._database).get(session_id)
        if session is None:
            return None
        return Dossier(
            session=session,
            turns=await self._database.fetch(lambda c: _turns(c, session_id)),
            proposals=await self._proposals(session_id),
            costs=await self._database.fetch(lambda c: _costs(c, session_id)),
            audit_log=await self._audit_entries(session_id),
        )

    async def _proposals(self, session_id: SessionId) -> Sequence[Proposal]:
        ids = await self._database.scalars(
            sa.select(proposals.c.id)
            .where(proposals.c.session_id == session_id)
            .order_by(proposals.c.created_at, proposals.c.id)
        )
        store = StoredProposals(self._database)
        found = [await store.get(ProposalId(each)) for each in ids]
        return [each for each in found if each is not None]

    async def _audit_entries(self, session_id: SessionId) -> Sequence[AuditEntry]:
        reader = StoredAuditReader(self._database)
        found: list[AuditEntry] = []
        while page := await reader.entries(
            after=found[-1].seq if found else 0, session=session_id, limit=PAGE_ROWS
        ):
            found += page
        return found


async def _turns(connection: AsyncConnection, session_id: str) -> Sequence[DossierTurn]:
    found = await connection.execute(
        sa.select(turns).where(turns.c.session_id == session_id).order_by(turns.c.ts, turns.c.id)
    )
    return [await _turn(connection, row) for row in found.all()]


async def _turn(connection: AsyncConnection, row: sa.Row[Any]) -> DossierTurn:
    said = await connection.scalars(
        sa.select(messages.c.body).where(messages.c.turn_id == row.id).order_by(messages.c.n)
    )
    seen = await connection.execute(
        sa.select(evidence).where(evidence.c.turn_id == row.id).order_by(evidence.c.number)
    )
    conversation = [to_message(body) for body in said]
    return DossierTurn(
        id=row.id,
        asker=row.asker_user,
        question=_first(conversation),
        answer=_last(conversation),
        state=row.state,
        started_at=row.started_at,
        ended_at=row.ended_at,
        answer_ts=row.answer_ts,
        evidence=[to_evidence(each) for each in seen],
    )


def _first(conversation: Sequence[Message]) -> str:
    return next((m.text for m in conversation if m.role is Role.USER), "")


def _last(conversation: Sequence[Message]) -> str:
    answers = [m.text for m in conversation if m.role is Role.ASSISTANT and m.text]
    return answers[-1] if answers else ""


async def _costs(connection: AsyncConnection, session_id: str) -> Sequence[DossierCost]:
    tokens = (
        spending.c.input_uncached
        + spending.c.cache_read
        + spending.c.cache_write
        + spending.c.output
    )
    found = await connection.execute(
        sa.select(
            spending.c.provider,
            spending.c.model,
            sa.func.count().label("rounds"),
            sa.func.sum(sa.case((spending.c.cost_usd_micros.is_(None), 1), else_=0)),
            sa.func.coalesce(sa.func.sum(tokens), 0),
            sa.func.coalesce(sa.func.sum(spending.c.cost_usd_micros), 0),
        )
        .where(spending.c.session_id == session_id)
        .group_by(spending.c.provider, spending.c.model)
        .order_by(spending.c.provider, spending.c.model)
    )
    return [
        DossierCost(row[0], row[1], int(row[2]), int(row[3]), int(row[4]), int(row[5]))
        for row in found
    ]


async def _count(connection: AsyncConnection, which: sa.ColumnElement[bool]) -> int:
    counted = sa.select(sa.func.count()).select_from(sessions).where(which)
    return int(await connection.scalar(counted) or 0)
