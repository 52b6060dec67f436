"""Deletion after the retention period: messages, and the results read.

Turns, proposals, spending and the audit log stay; they hold no messages.
"""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.alert_tables import alert_threads, alerts
from bot.store.chat_tables import chat_events
from bot.store.database import Database
from bot.store.dialect import seconds_ago
from bot.store.tables import evidence, feedback, messages, sessions, turn_steps, turns

DAY_S: Final = 86_400.0
# Turns emptied in one transaction: a first sweep of years must not hold the writer for long.
TURNS_AT_ONCE: Final = 200
EVENTS_AT_ONCE: Final = 1_000
# What says of a turn that it was emptied: without it every sweep would look at every turn again.
_DROPPED: Final = {
    messages.name: turns.c.messages_dropped,
    evidence.name: turns.c.results_dropped,
}
_EMPTY: Final[sa.ColumnElement[str]] = sa.literal_column("''")  # as the indexes of words have it


class StoredRetention:
    """Sweeps by the database's clock, so replicas agree. Idempotent; raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def drop_messages(self, older_than_s: float) -> int:
        """Delete messages of turns that ended before; the number of messages.

        Also summaries of them and reasons of votes on them, the words of alerts last heard of
        before, and events of HTTP conversations before.
        """
        await self._drop_summaries(older_than_s)
        await self._drop_reasons(older_than_s)
        await self._drop_alerts(older_than_s)
        await self._drop_chats(older_than_s)
        return await self._drop(messages, older_than_s)

    async def drop_results(self, older_than_s: float) -> int:
        """Delete the tool results of turns that ended before, and their notices; the number of
        results.

        Also their recorded steps, which only older releases leave behind.
        """
        await self._drop_steps(older_than_s)
        return await self._drop(evidence, older_than_s)

    async def _drop_alerts(self, older_than_s: float) -> None:
        over = sa.exists().where(
            alert_threads.c.id == alerts.c.thread_id,
            alert_threads.c.heard_at < seconds_ago(older_than_s),
        )
        has_words = sa.or_(alerts.c.title != _EMPTY, alerts.c.labels != sa.literal_column("'{}'"))

        await self._database.execute(
            alerts.update().where(has_words, over).values(title="", labels="{}")
        )

    async def _drop_chats(self, older_than_s: float) -> None:
        old = (
            sa.select(chat_events.c.session_id, chat_events.c.seq)
            .where(chat_events.c.at < seconds_ago(older_than_s))
            .limit(EVENTS_AT_ONCE)
        )
        key = sa.tuple_(chat_events.c.session_id, chat_events.c.seq)

        while await self._database.execute(chat_events.delete().where(key.in_(old))):
            pass

    async def _drop_summaries(self, older_than_s: float) -> None:
        over = sa.exists().where(
            turns.c.session_id == sessions.c.id,
            turns.c.ts == sessions.c.summary_ts,
            turns.c.ended_at < seconds_ago(older_than_s),
        )

        await self._database.execute(
            sessions.update()
            .where(sessions.c.summary != _EMPTY, over)
            .values(summary="", summary_ts="")
        )

    async def _drop_reasons(self, older_than_s: float) -> None:
        over = sa.exists().where(
            turns.c.id == feedback.c.turn_id, turns.c.ended_at < seconds_ago(older_than_s)
        )

        await self._database.execute(
            feedback.update().where(feedback.c.reason != _EMPTY, over).values(reason="")
        )

    async def _drop_steps(self, older_than_s: float) -> None:
        """Few at any time: a turn's go when it ends."""
        over = sa.exists().where(
            turns.c.id == turn_steps.c.turn_id, turns.c.ended_at < seconds_ago(older_than_s)
        )

        await self._database.execute(turn_steps.delete().where(over))

    async def _drop(self, table: sa.Table, older_than_s: float) -> int:
        mark = _DROPPED[table.name]
        words = {turns.c.notices: "[]"} if table is evidence else {turns.c.answer: ""}
        old = (
            sa.select(turns.c.id)
            .where(sa.text(f"NOT {mark.name}"), turns.c.ended_at < seconds_ago(older_than_s))
            .limit(TURNS_AT_ONCE)
        )

        async def work(connection: AsyncConnection) -> tuple[int, int]:
            chosen = list(await connection.scalars(old))
            gone = await connection.execute(table.delete().where(table.c.turn_id.in_(chosen)))
            await connection.execute(
                turns.update().where(turns.c.id.in_(chosen)).values({mark: True} | words)
            )
            return len(chosen), gone.rowcount if chosen else 0

        total, turns_left = 0, TURNS_AT_ONCE
        while turns_left == TURNS_AT_ONCE:
            turns_left, dropped = await self._database.transact(work)
            total += dropped
        return total
