"""`bot.ports.sessions.Undelivered` in the database: ends of turns that people have not seen yet.

A row lives until its answer is delivered or given up; it holds what the redacted messages of the
turn hold, and goes with it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.ids import TurnId
from bot.domain.session import Ask
from bot.domain.turn_events import TurnFinished
from bot.ports.sessions import HeldBack
from bot.store.database import Database
from bot.store.dialect import MOST, ago, now, seconds_ago
from bot.store.tables import undelivered

_ASK = TypeAdapter(Ask)
_FINAL = TypeAdapter(TurnFinished)
# Between two tries: doubled up to a minute.
_AGAIN_S = 5.0
_DOUBLINGS = 4


class StoredUndelivered:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, ask: Ask, final: TurnFinished) -> None:
        """Due at once; an existing row stays."""
        shown = replace(final, outcomes=[_without_raw(each) for each in final.outcomes])

        await self._database.execute(
            self._database.insert(undelivered)
            .values(
                turn_id=ask.turn_id,
                ask=_json(_ASK.dump_python(ask, mode="json")),
                final=_json(_FINAL.dump_python(shown, mode="json")),
                since=now(),
                due_at=now(),
            )
            .on_conflict_do_nothing(index_elements=["turn_id"])
        )

    async def claim(self, limit: int, age_s: float) -> Sequence[HeldBack]:
        """Longest waiting first."""
        return await self._claimed(_DUE, limit, age_s)

    async def overdue(self, limit: int, age_s: float) -> Sequence[HeldBack]:
        """Longest waiting first."""
        return await self._claimed(_OVERDUE, limit, age_s)

    async def settle(self, turn: TurnId) -> None:
        """It was delivered, or given up: delete its row."""

        await self._database.execute(undelivered.delete().where(undelivered.c.turn_id == turn))

    async def _claimed(self, due: sa.Select[Any], limit: int, age_s: float) -> Sequence[HeldBack]:
        asked = {"most": limit, "age_us": round(age_s * 1_000_000)}

        if await self._database.first(due, asked) is None:
            return []

        async def work(connection: AsyncConnection) -> Sequence[HeldBack]:
            found = (await connection.execute(due, asked)).all()
            return [held for row in found if (held := await _taken(connection, row)) is not None]

        return await self._database.transact(work)


def _due(which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(undelivered, now().label("read_at"))
        .where(which, undelivered.c.due_at <= seconds_ago(0))
        .order_by(undelivered.c.since, undelivered.c.turn_id)
        .limit(MOST)
    )


_DUE: Final = _due(undelivered.c.since > ago("age_us"))
_OVERDUE: Final = _due(undelivered.c.since <= ago("age_us"))


async def _taken(connection: AsyncConnection, row: sa.Row[Any]) -> HeldBack | None:
    again_s = _AGAIN_S * 2 ** min(row.tries, _DOUBLINGS)
    won = await connection.execute(
        undelivered.update()
        .where(undelivered.c.turn_id == row.turn_id, undelivered.c.due_at == row.due_at)
        .values(due_at=seconds_ago(-again_s), tries=row.tries + 1)
    )
    if won.rowcount != 1:
        return None
    ask, final = _ASK.validate_json(row.ask), _FINAL.validate_json(row.final)
    return HeldBack(ask, final, (row.read_at - row.since).total_seconds())


def _json(value: Any) -> str:
    # Not as ASCII: the column replaces what no text can hold, and would not see it as an escape.
    return json.dumps(value, ensure_ascii=False)


def _without_raw(outcome: Any) -> Any:
    return replace(outcome, record=replace(outcome.record, raw=None))
