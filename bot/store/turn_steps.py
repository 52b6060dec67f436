"""What turns under way have done, step by step: what whoever goes on with one need not do again.

A record is written in one transaction with the rows of its step, and by nobody but the owner of the
turn's ticket: a replica that was given up records nothing. It goes when the turn leaves its thread.
"""

from collections.abc import Mapping, Sequence
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
from bot.store.step_rows import Entry, StepRows
from bot.store.tables import tickets, turns
from bot.store.tickets import workflow_steps
from bot.store.turn_step_table import turn_steps


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step: the so-many-th of its turn, and its value as JSON."""

    n: int
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Past:
    """What is on record of a turn that comes again.

    `in_engine`: its steps are the workflow engine's, as releases before kept them. `is_over`: nothing
    of it is left to do.
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
        """For who has just become the owner of its ticket."""
        found = sa.select(turn_steps).where(turn_steps.c.turn_id == turn).order_by(turn_steps.c.n)
        state = sa.select(turns.c.state).where(turns.c.id == turn).scalar_subquery()
        rest = sa.select(self._in_engine, state)

        async def work(connection: AsyncConnection) -> Past:
            steps = [Step(row.n, row.name, row.value) for row in await connection.execute(found)]
            if steps:
                return Past(steps)
            in_engine, state = (await connection.execute(rest, {"turn": turn})).one()
            # Its records went with its ticket, which was the last of it.
            is_over = not in_engine and state not in (None, TurnState.RUNNING.value)
            return Past(in_engine=in_engine, is_over=is_over)

        return await self._database.fetch(work)

    async def keep(
        self,
        turn: str,
        owner: str,
        steps: Sequence[Step],
        rows: StepRows,
        entry: Entry | None = None,
    ) -> bool:
        """Record them with their rows; False, and nothing, when the turn is no longer that owner's.

        Raises `bot.store.tickets.Superseded` where it was so before the turn's `entry`.
        """

        async def work(connection: AsyncConnection) -> bool:
            mine = {"turn": turn, "owner": owner}
            if entry is not None and not entry.done:
                await entry.work(connection)
            if not steps:
                if (await connection.execute(_HELD, mine)).first() is None:
                    return False
            elif not await _inserted(connection, [mine | _row(step) for step in steps]):
                return False
            for each in rows.works:
                await each(connection)
            told = [event for each in rows.telling for event in await each(connection)]
            await append_audits(connection, [*rows.events, *told])
            return True

        is_mine = await self._database.transact(work)
        if entry is not None:
            entry.done = True
        return is_mine


_HELD: Final = (
    sa.select(tickets.c.id)
    .where(tickets.c.id == sa.bindparam("turn"), tickets.c.owner == sa.bindparam("owner"))
    .with_for_update(read=True)
)


def _row(step: Step) -> dict[str, Any]:
    return {"n": step.n, "name": step.name, "value": step.value}


async def _inserted(connection: AsyncConnection, steps: Sequence[Mapping[str, Any]]) -> bool:
    insert = _kept(connection.dialect.name)
    if (await connection.execute(insert, steps[0])).rowcount != 1:
        return False
    if rest := steps[1:]:  # with the ticket locked
        await connection.execute(insert, rest)
    return True


@cache
def _kept(dialect: str) -> sa.Executable:
    """Inserts a record while the ticket is the owner's, who can be no other until it is committed."""
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
    # Again after a lost connection: it is the same record.
    return insert.on_conflict_do_update(
        index_elements=["turn_id", "n"], set_={"name": insert.excluded.name}
    )
