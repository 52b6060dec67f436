"""The recorded steps of running turns, from which another replica can go on.

A record is written in one transaction with the rows of its step, and only while the turn's ticket
belongs to the writer: a replica that was given up records nothing. Records go with the ticket.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.session import TurnState
from bot.store.audit import append_audits
from bot.store.columns import CleanText
from bot.store.database import Database
from bot.store.dialect import INSERT
from bot.store.step_rows import StepRows
from bot.store.tables import tickets, turns
from bot.store.tickets import workflow_steps
from bot.store.turn_step_table import turn_steps


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step: its number in the turn, and its value as JSON."""

    n: int
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Past:
    """The records of a turn that is resumed.

    `in_engine`: its steps are DBOS's own, as earlier releases recorded them. `is_over`: nothing is
    left to do.
    """

    steps: Sequence[Step] = ()
    in_engine: bool = False
    is_over: bool = False


class TurnSteps:
    """The records in one database. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        finished = workflow_steps(database.dialect).c
        self._in_engine = sa.exists().where(finished.workflow_uuid == sa.bindparam("turn"))

    async def past(self, turn: str) -> Past:
        """The records of a turn, for the new owner of its ticket."""
        found = sa.select(turn_steps).where(turn_steps.c.turn_id == turn).order_by(turn_steps.c.n)
        state = sa.select(turns.c.state).where(turns.c.id == turn).scalar_subquery()
        rest = sa.select(self._in_engine, state)

        async def work(connection: AsyncConnection) -> Past:
            steps = [Step(row.n, row.name, row.value) for row in await connection.execute(found)]
            if steps:
                return Past(steps)
            in_engine, state = (await connection.execute(rest, {"turn": turn})).one()
            # The records went with the ticket, at the turn's end.
            is_over = not in_engine and state not in (None, TurnState.RUNNING.value)
            return Past(in_engine=in_engine, is_over=is_over)

        return await self._database.fetch(work)

    async def keep(self, turn: str, owner: str, steps: Sequence[Step], rows: StepRows) -> bool:
        """Record steps with their rows; False, and nothing, if the ticket is no longer `owner`'s."""

        async def work(connection: AsyncConnection) -> bool:
            mine = {"turn": turn, "owner": owner}
            if not steps:
                if (await connection.execute(_HELD, mine)).first() is None:
                    return False
            else:
                records = [mine | _row(step) for step in steps]
                kept = await connection.execute(_kept(connection.dialect.name), records)
                if kept.rowcount != len(steps):
                    return False
            for each in rows.works:
                await each(connection)
            told = [event for each in rows.telling for event in await each(connection)]
            await append_audits(connection, [*rows.events, *told])
            return True

        return await self._database.transact(work)


_HELD: Final = (
    sa.select(tickets.c.id)
    .where(tickets.c.id == sa.bindparam("turn"), tickets.c.owner == sa.bindparam("owner"))
    .with_for_update(read=True)
)


def _row(step: Step) -> dict[str, Any]:
    return {"n": step.n, "name": step.name, "value": step.value}


@cache
def _kept(dialect: str) -> sa.Executable:
    """Inserts a record if the ticket is the owner's, and locks the ticket until the commit."""
    columns = ("turn_id", "n", "name", "value")
    given: Sequence[Any] = (
        tickets.c.id,
        sa.bindparam("n", type_=sa.Integer()),
        sa.bindparam("name", type_=CleanText()),
        sa.bindparam("value", type_=CleanText()),
    )
    mine = (tickets.c.id == sa.bindparam("turn"), tickets.c.owner == sa.bindparam("owner"))
    insert = INSERT[dialect](turn_steps)
    insert = insert.from_select(columns, sa.select(*given).where(*mine).with_for_update(read=True))
    # The same record again, after a commit whose answer was lost.
    return insert.on_conflict_do_update(
        index_elements=["turn_id", "n"], set_={"name": insert.excluded.name}
    )
