"""The recorded steps of running turns, so that another replica can continue.

A record is written in one transaction with the rows of its step, and only while the turn's ticket
belongs to the writer: a replica that was given up records nothing. Records go with the ticket.
Records of several turns that are ready at the same time are written in one transaction.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any, Final

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.session import TurnState
from bot.store.audit import append_audits
from bot.store.columns import CleanText
from bot.store.database import Database
from bot.store.dialect import INSERT
from bot.store.step_rows import StepRows
from bot.store.tables import tickets, turn_steps, turns
from bot.store.tickets import workflow_steps

log = structlog.get_logger(__name__)

# Each waits for all of them. More gain little: what they share is the commit and the audit log's lock.
MOST_TOGETHER: Final = 16
# The least time between the transactions of different turns: turns that are ready by then share
# one.
SHARE_S: Final = 0.1


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


@dataclass(slots=True, eq=False)
class _Record:
    turn: str
    owner: str
    steps: Sequence[Step]
    rows: StepRows
    is_kept: bool = False  # by the transaction that wrote it with others


class _OwnershipLost(Exception):
    """A ticket is no longer its writer's: the transaction keeps nothing."""


class TurnSteps:
    """The records in one database. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._one_at_a_time = asyncio.Lock()
        self._waiting: list[_Record] = []
        self._written_last: Collection[str] = ()
        self._written_at = 0.0
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
        """Record steps with their rows; False, and nothing, if the ticket is no longer `owner`'s.

        Records that are ready while another one is written share the next transaction. If that
        fails, each is written alone, so that no turn fails for another one's rows.
        """
        record = _Record(turn, owner, steps, rows)
        self._waiting.append(record)
        try:
            async with self._one_at_a_time:
                if record in self._waiting:
                    await self._let_others_join(turn)
                    await self._write_waiting()
        finally:
            if record in self._waiting:  # its caller was cancelled
                self._waiting.remove(record)
        if record.is_kept:
            return True
        try:
            await self._database.transact(partial(_keep, [record]))
        except _OwnershipLost:
            return False
        return True

    async def _let_others_join(self, turn: str) -> None:
        # A turn that writes alone never waits.
        wait_s = self._written_at + SHARE_S - asyncio.get_running_loop().time()
        if wait_s > 0 and turn not in self._written_last and len(self._waiting) < MOST_TOGETHER:
            await asyncio.sleep(wait_s)

    async def _write_waiting(self) -> None:
        some, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        # In one order on all replicas: rows of a channel's sums are locked until the commit.
        some.sort(key=attrgetter("turn"))
        writing = self._database.transact(partial(_keep, some), again=False)
        (failed,) = await asyncio.gather(writing, return_exceptions=True)
        self._written_last = {record.turn for record in some}
        self._written_at = asyncio.get_running_loop().time()
        if failed is not None:  # each is written alone then, and raises its own error
            log.debug("records_written_alone", records=len(some), error=type(failed).__name__)
            return
        for record in some:
            record.is_kept = True


_HELD: Final = (
    sa.select(tickets.c.id)
    .where(tickets.c.id == sa.bindparam("turn"), tickets.c.owner == sa.bindparam("owner"))
    .with_for_update(read=True)
)


async def _keep(records: Sequence[_Record], connection: AsyncConnection) -> None:
    events = []
    await _insert_steps(records, connection)
    for record in records:
        for work in record.rows.works:
            await work(connection)
        told = [event for each in record.rows.telling for event in await each(connection)]
        events += [*record.rows.events, *told]
    await append_audits(connection, events)


async def _insert_steps(records: Sequence[_Record], connection: AsyncConnection) -> None:
    steps = []
    for record in records:
        mine = {"turn": record.turn, "owner": record.owner}
        steps += [mine | _row(step) for step in record.steps]
        if not record.steps and (await connection.execute(_HELD, mine)).first() is None:
            raise _OwnershipLost
    if steps:
        written = await connection.execute(_recording(connection.dialect.name), steps)
        if written.rowcount != len(steps):
            raise _OwnershipLost


def _row(step: Step) -> dict[str, Any]:
    return {"n": step.n, "name": step.name, "value": step.value}


@cache
def _recording(dialect: str) -> sa.Executable:
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
    # The same record again, after a commit with a lost answer.
    return insert.on_conflict_do_update(
        index_elements=["turn_id", "n"], set_={"name": insert.excluded.name}
    )
