"""Conversations over HTTP, as rows: the questions, and an ordered log that any replica can continue
reading.

The writers of a session's log wait for each other, so a readable number has all earlier ones before
it. One answer has one writer: the last one that took it.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.chats import ChatEvent, ChatEventKind, ChatSession, NewChatEvent
from bot.domain.ids import API, MessageTs, Person, Place, TeamId, UserId, turn_of
from bot.store.chat_tables import chat_events, chat_messages, chat_sessions
from bot.store.columns import to_micros
from bot.store.database import NOW, Database
from bot.store.dialect import insert_into
from bot.store.tables import tickets, turns

_ID_BYTES: Final = 12
# Of the events that one reader's page holds in memory: a slow one holds it for half a minute an event.
PAGE_CHARS: Final = 262_144
# Read by the primary key of the events: one row for each session of a list.
_FIRST_QUESTION: Final = (
    sa.select(chat_events.c.data)
    .where(
        chat_events.c.session_id == chat_sessions.c.id,
        chat_events.c.kind == ChatEventKind.QUESTION.value,
    )
    .order_by(chat_events.c.seq)
    .limit(1)
    .scalar_subquery()
    .label("question")
)
_TEXT: Final = (ChatEventKind.TEXT.value, ChatEventKind.RESET.value)


class KeyReused(Exception):
    """The idempotency key was used for another question."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The events of an answer so far: whether there is text, and the other events."""

    has_text: bool
    told: frozenset[tuple[str, str]]  # kind and data

    @property
    def has_ended(self) -> bool:
        """Whether the end is written: later text would replace the whole text."""
        return any(kind == ChatEventKind.DONE for kind, _ in self.told)


class StoredChats:
    """Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, channel: str, owner: Person, owner_name: str) -> ChatSession:
        session_id = f"s_{secrets.token_hex(_ID_BYTES)}"

        async def work(connection: AsyncConnection) -> ChatSession:
            at = (await connection.execute(NOW)).scalar_one()
            # Seconds as everywhere; a random part, so that two of one moment are two.
            thread = f"{to_micros(at) // 1_000_000}.{secrets.randbelow(1_000_000):06d}"
            await connection.execute(
                chat_sessions.insert().values(
                    id=session_id,
                    channel=channel,
                    thread=thread,
                    owner_team=owner.team,
                    owner_user=owner.user,
                    owner_name=owner_name,
                    created_at=at,
                )
            )
            return ChatSession(session_id, channel, thread, owner, owner_name, at)

        return await self._database.transact(work, again=False)

    async def get(self, session_id: str) -> ChatSession | None:
        return await self._one(chat_sessions.c.id == session_id)

    async def at(self, place: Place) -> ChatSession | None:
        if place.team != API:
            return None
        return await self._one(
            chat_sessions.c.channel == place.channel, chat_sessions.c.thread == place.thread_ts
        )

    async def newest(self, owner: Person | None, limit: int) -> Sequence[ChatSession]:
        """The newest first, each with its first question; only that person's, if one is named."""
        statement = (
            sa.select(chat_sessions, _FIRST_QUESTION)
            .order_by(chat_sessions.c.created_at.desc(), chat_sessions.c.id)
            .limit(limit)
        )
        if owner is not None:
            statement = statement.where(
                chat_sessions.c.owner_team == owner.team, chat_sessions.c.owner_user == owner.user
            )

        found = await self._database.rows(statement)
        return [replace(_session(row), question=row.question or "") for row in found]

    async def ask(
        self,
        session: ChatSession,
        key: str,
        text: str,
        question: Callable[[MessageTs], NewChatEvent],
    ) -> MessageTs:
        """Store a question with its event `question`; the same key again returns the same one.

        The caller starts its turn. Raises KeyReused.
        """
        digest = sha256(text.encode("utf-8", "replace")).hexdigest()

        async def work(connection: AsyncConnection) -> MessageTs:
            await _lock(connection, session.id)
            known = await connection.execute(
                sa.select(chat_messages.c.ts, chat_messages.c.digest).where(
                    chat_messages.c.session_id == session.id, chat_messages.c.key == key
                )
            )
            if (row := known.first()) is not None:
                if row.digest != digest:
                    raise KeyReused
                return MessageTs(row.ts)
            ts = await _next_ts(connection, session.id)
            await connection.execute(
                chat_messages.insert().values(
                    session_id=session.id, ts=ts, key=key, digest=digest, writer=""
                )
            )
            await _append(connection, session.id, [question(ts)])
            return ts

        return await self._database.transact(work)

    async def take(self, session_id: str, message: str, writer: str) -> StoredAnswer | None:
        """Take the answer over from its writer; None for an unknown question."""

        async def work(connection: AsyncConnection) -> StoredAnswer | None:
            await _lock(connection, session_id)
            changed = await connection.execute(
                chat_messages.update()
                .where(chat_messages.c.session_id == session_id, chat_messages.c.ts == message)
                .values(writer=writer)
                .returning(chat_messages.c.ts)
            )
            if changed.first() is None:
                return None
            found = await connection.execute(
                sa.select(chat_events.c.kind, chat_events.c.data).where(
                    chat_events.c.session_id == session_id, chat_events.c.message == message
                )
            )
            rows = found.all()
            told = frozenset((r.kind, r.data) for r in rows if r.kind not in _TEXT)
            return StoredAnswer(any(r.kind in _TEXT for r in rows), told)

        return await self._database.transact(work)

    async def tell(
        self, session_id: str, message: str, writer: str, events: Sequence[NewChatEvent]
    ) -> bool:
        """Append to an answer; False when another writer has taken it.

        No retry, so no duplicates.
        """

        async def work(connection: AsyncConnection) -> bool:
            await _lock(connection, session_id)
            mine = await connection.scalar(
                sa.select(chat_messages.c.writer).where(
                    chat_messages.c.session_id == session_id, chat_messages.c.ts == message
                )
            )
            if mine != writer:
                return False
            await _append(connection, session_id, events)
            return True

        return await self._database.transact(work, again=False)

    async def say(self, session_id: str, event: NewChatEvent) -> bool:
        """Append an event with a key, once; False when the conversation was erased."""

        async def work(connection: AsyncConnection) -> bool:
            if not await _lock(connection, session_id):
                return False
            await _append(connection, session_id, [event])
            return True

        return await self._database.transact(work)

    async def after(
        self, session_id: str, seq: int, reader: Person, limit: int, message: str | None = None
    ) -> Sequence[ChatEvent]:
        """In order, after that number; of one question, if given. Without events for other readers.

        Fewer than `limit` if they are long: up to `PAGE_CHARS` together.
        """
        statement = (
            sa.select(chat_events)
            .where(
                chat_events.c.session_id == session_id,
                chat_events.c.seq > seq,
                chat_events.c.to_user.in_(("", reader.user)),
            )
            .order_by(chat_events.c.seq)
            .limit(limit)
        )
        if message is not None:
            statement = statement.where(chat_events.c.message == message)
        page = _to_here(statement.subquery())
        short = sa.select(page).where(page.c.before < PAGE_CHARS).order_by(page.c.seq)

        return [_event(row) for row in await self._database.rows(short)]

    async def is_at_work(self, session: ChatSession, ts: str) -> bool:
        turn = turn_of(session.place, MessageTs(ts))
        running = sa.exists().where(turns.c.id == turn, turns.c.ended_at.is_(None))
        waiting = sa.exists().where(tickets.c.id == turn)

        return bool(await self._database.scalar(sa.select(sa.or_(running, waiting))))

    async def is_begun(self, session: ChatSession, ts: str) -> bool:
        """Whether its turn was begun, however long ago."""
        turn = turn_of(session.place, MessageTs(ts))
        statement = sa.select(turns.c.id).where(turns.c.id == turn)

        return await self._database.scalar(statement) is not None

    async def has_question(self, session_id: str, ts: str) -> bool:
        statement = sa.select(chat_messages.c.ts).where(
            chat_messages.c.session_id == session_id, chat_messages.c.ts == ts
        )

        return await self._database.scalar(statement) is not None

    async def _one(self, *conditions: sa.ColumnElement[bool]) -> ChatSession | None:
        statement = sa.select(chat_sessions).where(*conditions)

        row = await self._database.first(statement)
        return None if row is None else _session(row)


async def _lock(connection: AsyncConnection, session_id: str) -> bool:
    """The writers of a session wait for each other; on SQLite all do anyway. False without one."""
    row = sa.select(chat_sessions.c.id).where(chat_sessions.c.id == session_id)
    return (await connection.execute(row.with_for_update())).first() is not None


async def _next_ts(connection: AsyncConnection, session_id: str) -> MessageTs:
    """By the database's clock, and later than every question before: the order of turns."""
    newest = await connection.scalar(
        sa.select(sa.func.max(chat_messages.c.ts)).where(chat_messages.c.session_id == session_id)
    )
    at = to_micros((await connection.execute(NOW)).scalar_one())
    if newest is not None:
        seconds, _, micros = str(newest).partition(".")
        at = max(at, int(seconds) * 1_000_000 + int(micros) + 1)
    return MessageTs(f"{at // 1_000_000}.{at % 1_000_000:06d}")


async def _append(
    connection: AsyncConnection, session_id: str, events: Sequence[NewChatEvent]
) -> None:
    this = chat_sessions.c.id == session_id
    seq = int(await connection.scalar(sa.select(chat_sessions.c.last_seq).where(this)) or 0)
    at = (await connection.execute(NOW)).scalar_one()
    for event in events:
        added = await connection.execute(
            insert_into(connection, chat_events)
            .values(
                session_id=session_id,
                seq=seq + 1,
                kind=event.kind.value,
                data=event.data,
                message=event.message,
                key=event.key,
                to_user=event.to,
                at=at,
            )
            .on_conflict_do_nothing(index_elements=["session_id", "key"])
            .returning(chat_events.c.seq)
        )
        seq += added.first() is not None
    await connection.execute(chat_sessions.update().where(this).values(last_seq=seq))


def _session(row: sa.Row[Any]) -> ChatSession:
    owner = Person(TeamId(row.owner_team), UserId(row.owner_user))
    return ChatSession(row.id, row.channel, row.thread, owner, row.owner_name, row.created_at)


def _to_here(rows: sa.Subquery) -> sa.Subquery:
    size = sa.func.length(rows.c.data)
    before = sa.func.sum(size).over(order_by=rows.c.seq) - size
    return sa.select(rows, before.label("before")).subquery()


def _event(row: sa.Row[Any]) -> ChatEvent:
    kind = ChatEventKind(row.kind)
    return ChatEvent(row.seq, kind, row.data, row.message, row.to_user, row.at)
