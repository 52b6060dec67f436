"""`bot.ports.feedback.Feedback` in the database: a vote and its audit row are one transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.feedback import Judged, Opinion, Vote
from bot.domain.ids import ChannelId, MessageTs, Person, Place, SessionId, TeamId, TurnId, UserId
from bot.domain.session import TurnState
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import insert_into, now, seconds_ago
from bot.store.session_rows import to_message
from bot.store.tables import feedback, messages, sessions, turns
from bot.store.tenant_filter import TenantScope, of_session, of_team
from tools.redactor import Redacted

DAY_S: Final = 86_400.0
_MOST: Final = 1_000  # opinions read at once


class StoredFeedback:
    """Votes as rows, by turn and person. With `retain` false no reason is kept.

    `scope` limits the rows read.
    """

    def __init__(
        self, database: Database, *, retain: bool = True, scope: TenantScope = None
    ) -> None:
        self._database = database
        self._scope = scope
        self._retain = retain

    @property
    def keeps_reasons(self) -> bool:
        return self._retain

    async def vote(self, turn: TurnId, person: Person, vote: Vote, key: str) -> bool | None:
        """Insert or change the row of that person; the same vote again is nothing new."""

        async def work(connection: AsyncConnection) -> bool | None:
            session = await _session_of(connection, turn)
            if session is None:
                return None
            cast = insert_into(connection, feedback).values(
                turn_id=turn, team=person.team, user_id=person.user, vote=vote.value, at=now()
            )
            changed = await connection.execute(
                cast.on_conflict_do_update(
                    index_elements=["turn_id", "team", "user_id"],
                    set_={"vote": vote.value, "reason": "", "at": now()},
                    where=feedback.c.vote != vote.value,
                ).returning(feedback.c.turn_id)
            )
            if changed.first() is None:
                return False
            await append_audit(connection, _on_record(turn, person, vote, session, key))
            return True

        return await self._database.transact(work)

    async def explain(self, turn: TurnId, person: Person, reason: Redacted, key: str) -> bool:
        """Store it in the row of a counted vote."""

        async def work(connection: AsyncConnection) -> bool:
            kept = await connection.execute(
                feedback.update()
                .where(
                    feedback.c.turn_id == turn,
                    feedback.c.team == person.team,
                    feedback.c.user_id == person.user,
                    feedback.c.vote == Vote.DOWN.value,
                )
                .values(reason=reason, at=now())
            )
            if kept.rowcount != 1:
                return False
            session = await _session_of(connection, turn) or ""
            event = _on_record(turn, person, Vote.DOWN, session, key, explained=True)
            await append_audit(connection, event)
            return True

        return self._retain and await self._database.transact(work)

    async def judged(self, days: int) -> Sequence[Judged]:
        # Of each answer by its key: votes of all time are not read.
        votes = sa.select(sa.func.count()).where(feedback.c.turn_id == turns.c.id)
        up = votes.where(feedback.c.vote == Vote.UP.value)
        answered = (
            sa.select(
                sa.func.coalesce(turns.c.provider, "").label("provider"),
                up.scalar_subquery().label("up"),
                votes.scalar_subquery().label("votes"),
            )
            .where(
                turns.c.state == TurnState.ANSWERED.value,
                turns.c.ended_at >= seconds_ago(days * DAY_S),
                of_session(turns.c.session_id, self._scope),
            )
            .subquery()
        )
        sums = sa.func.sum(answered.c.up), sa.func.sum(answered.c.votes)

        found = await self._database.rows(
            sa.select(answered.c.provider, sa.func.count(), *sums)
            .group_by(answered.c.provider)
            .order_by(answered.c.provider)
        )
        return [Judged(p, days, int(n), int(u), int(v) - int(u)) for p, n, u, v in found]

    async def reasons(self, limit: int) -> Sequence[Opinion]:
        own = of_team(sessions.c.team, self._scope)
        wanted = _opinions().where(feedback.c.reason != sa.literal_column("''"), own)
        return await self._read(wanted.order_by(feedback.c.at.desc()).limit(limit))

    async def between(self, start: datetime, end: datetime) -> Sequence[Opinion]:
        wanted = _opinions().where(turns.c.started_at >= start, turns.c.started_at <= end)
        order = (turns.c.started_at, turns.c.id, feedback.c.at)
        return await self._read(wanted.order_by(*order).limit(_MOST))

    async def _read(self, wanted: sa.Select[Any]) -> Sequence[Opinion]:
        return [_opinion(row) for row in await self._database.rows(wanted)]


async def _session_of(connection: AsyncConnection, turn: TurnId) -> str | None:
    found: str | None = await connection.scalar(
        sa.select(turns.c.session_id).where(
            turns.c.id == turn, turns.c.state != TurnState.RUNNING.value
        )
    )
    return found


def _on_record(
    turn: TurnId, person: Person, vote: Vote, session: str, key: str, *, explained: bool = False
) -> AuditEvent:
    """Without the reason's words: the audit log keeps nothing that was said."""
    return AuditEvent(
        AuditKind.FEEDBACK_GIVEN,
        person.user,
        {"turn": turn, "vote": vote.value, "explained": explained},
        SessionId(session),
        key,
    )


def _opinions() -> sa.Select[Any]:
    asked = sa.and_(messages.c.turn_id == turns.c.id, messages.c.n == 0)
    return sa.select(
        feedback,
        turns.c.provider,
        turns.c.answer_ts,
        sessions.c.team.label("place_team"),
        sessions.c.channel,
        sessions.c.thread_ts,
        messages.c.body,
    ).select_from(
        feedback.join(turns, turns.c.id == feedback.c.turn_id)
        .join(sessions, sessions.c.id == turns.c.session_id)
        .outerjoin(messages, asked)
    )


def _opinion(row: sa.Row[Any]) -> Opinion:
    return Opinion(
        turn=row.turn_id,
        place=Place(TeamId(row.place_team), ChannelId(row.channel), MessageTs(row.thread_ts)),
        answer_ts=row.answer_ts,
        provider=row.provider or "",
        vote=Vote(row.vote),
        reason=row.reason,
        by=UserId(row.user_id),
        at=row.at,
        asked=to_message(row.body).text if row.body else "",
    )
