"""`bot.ports.sessions.SessionStore` in the database: sessions, turns and their messages."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.llm.messages import Message, Role
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ChannelId, MessageTs, Place, SessionId, TeamId, TurnId, session_at
from bot.domain.session import Ask, Session, Summary, TurnState
from bot.domain.turn_events import Evidence
from bot.store.audit import append_audit, write_telling
from bot.store.database import Database
from bot.store.incident_rows import keep_session
from bot.store.session_rows import (
    INSERT_EVIDENCE,
    INSERT_MESSAGES,
    RESULTS_OF,
    asked_in,
    beginning,
    close_idle,
    is_read_by,
    keep_summary,
    of_evidence,
    of_messages,
    opening,
    to_evidence,
    to_message,
)
from bot.store.step_rows import write_with_step
from bot.store.tables import evidence as evidence_table
from bot.store.tables import messages as messages_table
from bot.store.tables import sessions, tickets, turns

IDLE_TTL = timedelta(hours=168)
# Each waits for the audit log's lock with a connection, and new questions need connections too.
BEGIN_AT_ONCE: Final = 4


class StoredSessions:
    """Sessions as rows. A session's id follows from its place, so opening one never races.

    One that is idle for longer than `idle_ttl` is closed: the next ask restarts it. With `retain`
    false a turn leaves no messages and no results when it ends.
    """

    def __init__(
        self, database: Database, idle_ttl: timedelta = IDLE_TTL, *, retain: bool = True
    ) -> None:
        self._database = database
        self._idle_ttl = idle_ttl
        self._retain = retain
        self._beginning = asyncio.Semaphore(BEGIN_AT_ONCE)

    async def begin_turn(self, ask: Ask, name: str, at: datetime, told: str = "") -> Session:
        """Insert the turn, its user message and its audit row, once; its session's name stays."""

        async def work(connection: AsyncConnection) -> Session:
            session = await self._opened(connection, ask, name, at)
            await _begin(connection, ask, session, at, told)
            return session

        async with self._beginning:
            return await self._database.transact(work)

    async def _opened(
        self, connection: AsyncConnection, ask: Ask, name: str, at: datetime
    ) -> Session:
        place = ask.place
        values = {
            "id": session_at(place),
            "same": session_at(place),
            "team": place.team,
            "channel": place.channel,
            "thread_ts": place.thread_ts,
            "name": name,
            "created_at": at,
            "active_at": at,
            "turn": ask.turn_id,
            "ttl_us": self._idle_ttl // timedelta(microseconds=1),
        }
        kept = (await connection.execute(opening(connection.dialect.name), values)).one()
        return replace(_session(kept), is_new=not kept.has_other_turns)

    async def close_idle(self) -> int:
        """Close what has been idle for too long, by the database's clock; how many it was."""

        async def work(connection: AsyncConnection) -> int:
            return await close_idle(connection, self._idle_ttl)

        return await self._database.transact(work)

    async def find(self, place: Place) -> Session | None:
        row = await self._database.first(sa.select(sessions).where(_is_at(place)))
        return None if row is None else _session(row)

    async def get(self, session_id: SessionId) -> Session | None:
        row = await self._database.first(sa.select(sessions).where(sessions.c.id == session_id))
        return None if row is None else _session(row)

    async def history(
        self, session: SessionId, before: TurnId, after_ts: str = ""
    ) -> Sequence[Message]:
        """The finished turns before the message of `before`; empty if unknown."""
        asked = {"session": session, "before": before, "after": after_ts}

        found = await self._database.rows(_HISTORY, asked)
        return [to_message(row.body, row.blocks) for row in found]

    async def finish_turn(
        self,
        turn: TurnId,
        state: TurnState,
        messages: Sequence[Message],
        evidence: Sequence[Evidence],
        at: datetime,
        summary: Summary | None = None,
        notices: Sequence[str] = (),
        answer: str = "",
    ) -> bool:
        """Close the running turn with what it said, consulted, and its audit row, once.

        Returns whether `answer` is stored.
        """
        ended_as = {
            "state": state.value,
            "ended_at": at,
            "provider": _provider_of(messages),
            "notices": json.dumps(list(notices) if self._retain else []),
            "answer": answer if self._retain else "",
        }

        async def work(connection: AsyncConnection) -> Sequence[AuditEvent]:
            closed = await connection.execute(_CLOSE, ended_as | {"turn": turn})
            if (row := closed.first()) is None:
                # Another process may have ended it as lost: its message is about to show the answer.
                await connection.execute(_ADD_ANSWER, {"turn": turn, "whole": ended_as["answer"]})
                return ()
            await self._keep_words(connection, turn, messages, evidence, summary)
            ended = AuditEvent(
                kind=AuditKind.TURN_ENDED,
                actor=row.asker_user,
                body={"turn": turn, "state": state.value, "evidence": len(evidence)},
                session_id=row.session_id,
                key=f"{turn}:ended",
            )
            if state is TurnState.ANSWERED and evidence:
                await keep_session(connection, row.session_id, turn, messages, at)
            return (ended,)

        await write_telling(self._database, work)
        return bool(ended_as["answer"])

    async def _keep_words(
        self,
        connection: AsyncConnection,
        turn: TurnId,
        messages: Sequence[Message],
        evidence: Sequence[Evidence],
        summary: Summary | None,
    ) -> None:
        if not self._retain:
            await connection.execute(
                messages_table.delete().where(messages_table.c.turn_id == turn)
            )
            return
        if summary is not None:
            await keep_summary(connection, turn, summary)
        if messages:
            await connection.execute(INSERT_MESSAGES, of_messages(turn, messages, 1))
        if evidence:
            rows = [of_evidence(turn, each) for each in evidence]
            await connection.execute(INSERT_EVIDENCE, rows)

    async def answer(self, turn: TurnId) -> str:
        of_turn = sa.select(turns.c.answer).where(turns.c.id == turn)
        return str(await self._database.scalar(of_turn) or "")

    async def set_answer(self, turn: TurnId, ts: MessageTs) -> None:
        async def work(connection: AsyncConnection) -> None:
            await connection.execute(_SET_ANSWER, {"turn": turn, "message": ts})

        await write_with_step(self._database, work)

    async def turn_of_answer(self, place: Place, ts: MessageTs) -> TurnId | None:
        """The turn with that message as its answer; a message is one of its channel, in any thread."""
        return await self._one_turn(
            sessions.c.team == place.team,
            sessions.c.channel == place.channel,
            turns.c.answer_ts == ts,
        )

    async def running_turn(self, place: Place) -> TurnId | None:
        """The turn that is being answered in that place, else the one that waits to be; of several,
        the oldest message's.
        """
        running = turns.c.state == TurnState.RUNNING.value
        return await self._one_turn(_is_at(place), running) or await self._turn_in_line(place)

    async def _turn_in_line(self, place: Place) -> TurnId | None:
        begun = sa.exists().where(turns.c.id == tickets.c.id)

        found = await self._database.scalar(
            sa.select(tickets.c.id)
            .where(tickets.c.thread == place.key, ~begun)
            .order_by(tickets.c.ts, tickets.c.id)
            .limit(1)
        )
        return None if found is None else TurnId(found)

    async def evidence(self, turn: TurnId, number: int) -> Evidence | None:
        row = await self._database.first(
            sa.select(evidence_table).where(
                evidence_table.c.turn_id == turn, evidence_table.c.number == number
            )
        )
        return None if row is None else to_evidence(row)

    async def notices(self, turn: TurnId) -> Sequence[str]:
        of_turn = sa.select(turns.c.notices).where(turns.c.id == turn)
        return [str(each) for each in json.loads(await self._database.scalar(of_turn) or "[]")]

    async def consulted(self, turn: TurnId) -> Sequence[tuple[Evidence, Mapping[str, JsonValue]]]:
        async def work(
            connection: AsyncConnection,
        ) -> Sequence[tuple[Evidence, Mapping[str, JsonValue]]]:
            found = (await connection.execute(RESULTS_OF, {"turn": turn})).all()
            bodies = await connection.execute(
                sa.select(messages_table.c.body).where(messages_table.c.turn_id == turn)
            )
            said = [to_message(row.body) for row in bodies]
            results = [to_evidence(row) for row in found]
            return [(each, asked_in(said, each.tool_call_id)) for each in results]

        return await self._database.fetch(work)

    async def asked(self, turn: TurnId, tool_call_id: str) -> Mapping[str, JsonValue]:
        found = await self._database.rows(
            sa.select(messages_table.c.body).where(messages_table.c.turn_id == turn)
        )
        return asked_in([to_message(row.body) for row in found], tool_call_id)

    async def _one_turn(self, *conditions: sa.ColumnElement[bool]) -> TurnId | None:
        found = await self._database.scalar(
            sa.select(turns.c.id)
            .join(sessions, sessions.c.id == turns.c.session_id)
            .where(*conditions)
            .order_by(turns.c.ts, turns.c.id)
            .limit(1)
        )
        return None if found is None else TurnId(found)


async def _begin(
    connection: AsyncConnection, ask: Ask, session: Session, at: datetime, told: str
) -> None:
    turn = ask.turn_id
    values = {
        "id": turn,
        "session_id": session.id,
        "ts": ask.ts,
        "asker_team": ask.asker.team,
        "asker_user": ask.asker.user,
        "state": TurnState.RUNNING.value,
        "started_at": at,
    }
    inserted = await connection.execute(beginning(connection.dialect.name), values)
    if inserted.rowcount != 1:
        return
    asked = Message(Role.USER, text=ask.text, told=told)
    await connection.execute(INSERT_MESSAGES, of_messages(turn, [asked], 0))
    started = AuditEvent(
        kind=AuditKind.TURN_STARTED,
        actor=ask.asker.user,
        body={"turn": turn, "place": ask.place.key, "session_name": session.name},
        session_id=session.id,
        key=f"{turn}:started",
    )
    await append_audit(connection, started)


_ENDED_AS: Final = ("state", "ended_at", "provider", "notices", "answer")
_CLOSE: Final = (
    turns.update()
    .where(turns.c.id == sa.bindparam("turn"), turns.c.state == TurnState.RUNNING.value)
    .values({name: sa.bindparam(name) for name in _ENDED_AS})
    .returning(turns.c.session_id, turns.c.asker_user)
)
_ADD_ANSWER: Final = (
    turns.update()
    .where(turns.c.id == sa.bindparam("turn"), turns.c.answer == "")
    .values(answer=sa.bindparam("whole"))
)
_SET_ANSWER: Final = (
    turns.update()
    .where(turns.c.id == sa.bindparam("turn"))
    .values(answer_ts=sa.bindparam("message"))
)


_this = turns.alias()
_HISTORY: Final = (
    sa.select(messages_table.c.body, messages_table.c.blocks)
    .join(turns, turns.c.id == messages_table.c.turn_id)
    .join(sessions, sessions.c.id == turns.c.session_id)
    .join(_this, _this.c.id == sa.bindparam("before"))
    .where(
        turns.c.session_id == sa.bindparam("session"),
        turns.c.ts > sa.bindparam("after"),
        *is_read_by(_this),
    )
    .order_by(turns.c.ts, turns.c.id, messages_table.c.n)
)


def _provider_of(messages: Sequence[Message]) -> str | None:
    return next((m.provider for m in reversed(messages) if m.provider), None)


def _is_at(place: Place) -> sa.ColumnElement[bool]:
    return sessions.c.id == session_at(place)


def _session(row: sa.Row[Any]) -> Session:
    return Session(
        id=SessionId(row.id),
        place=Place(TeamId(row.team), ChannelId(row.channel), MessageTs(row.thread_ts)),
        name=row.name,
        created_at=row.created_at,
        active_at=row.active_at,
        resumed_by=row.resumed_by,
        summary=row.summary,
        summary_ts=row.summary_ts,
    )
