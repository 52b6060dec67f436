"""Messages that were accepted and whose workflow is not begun yet: an inbox of a few milliseconds.

A row is there before a platform is told that its message was taken, in one short transaction with
the place in the thread. It goes when the turn enters its thread; what is left behind by a process
that ended in between is begun by whoever looks next.
"""

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.accepted_table import accepted
from bot.store.columns import CleanText
from bot.store.database import Database
from bot.store.dialect import INSERT, as_engines
from bot.store.tables import tickets
from bot.store.tickets import NOBODY, workflow_status


class Taken(Enum):
    """What became of a message that was to be accepted."""

    KNOWN = auto()  # accepted before, here or on another replica: nothing is written
    IN_LINE = auto()  # behind others of its thread
    FIRST = auto()  # its thread's slot is kept for it: `Tickets.entry`


class Accepted:
    """Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(self, turn: str, thread: str, ts: str, ask: str) -> Taken:
        """Keep the ask (JSON), with its place in the thread's line."""
        lost = False  # a commit whose answer did not come: what is there already may be ours
        place = {"id": turn, "thread": thread, "ts": ts}

        async def work(connection: AsyncConnection) -> Taken:
            nonlocal lost
            again, lost = lost, True
            dialect = connection.dialect.name
            kept = await connection.execute(_keeping(dialect), {"id": turn, "ask": ask})
            if kept.rowcount != 1:
                return Taken.IN_LINE if again else Taken.KNOWN
            taken = (await connection.execute(_placing(dialect), place)).first()
            if taken is None:  # somebody else of the thread was placed at the same moment
                await connection.execute(_waiting(dialect), place)
            return Taken.FIRST if taken and taken.state == "running" else Taken.IN_LINE

        return await self._database.transact(work)

    async def left(self) -> Mapping[str, str]:
        """The asks (JSON), by turn, that no workflow answers yet. Rows of all others are removed."""

        async def look(connection: AsyncConnection) -> Mapping[str, str | None]:
            found = await connection.execute(_every(connection.dialect.name))
            return {row.id: None if row.workflow_uuid else row.ask for row in found}

        async def remove(connection: AsyncConnection) -> None:
            is_begun = _is_begun(workflow_status(connection.dialect.name))
            await connection.execute(accepted.delete().where(sa.exists().where(is_begun)))

        found = await self._database.fetch(look)
        if None in found.values():
            await self._database.transact(remove)
        return {turn: ask for turn, ask in found.items() if ask is not None}


def _given(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(name, type_=CleanText())


def _is_begun(workflows: sa.TableClause) -> sa.ColumnElement[bool]:
    return workflows.c.workflow_uuid == as_engines(accepted.c.id)


@cache
def _every(dialect: str) -> sa.Select[str, str, str]:
    workflows = workflow_status(dialect)
    every = accepted.outerjoin(workflows, _is_begun(workflows))
    asked = sa.select(accepted.c.id, accepted.c.ask, workflows.c.workflow_uuid)
    return asked.select_from(every)


@cache
def _keeping(dialect: str) -> sa.Executable:
    """Inserts an ask that nothing is known of; made once, which takes longer than to run it."""
    known = sa.exists().where(workflow_status(dialect).c.workflow_uuid == as_engines(_given("id")))
    row = sa.select(_given("id"), _given("ask")).where(~known)
    insert = INSERT[dialect](accepted).from_select(["id", "ask"], row)
    return insert.on_conflict_do_nothing(index_elements=["id"])


@cache
def _placing(dialect: str) -> sa.Executable:
    """Inserts a place, with the slot of a thread in which nobody is."""
    anybody = sa.exists().where(tickets.c.thread == _given("thread"))
    state = sa.case((anybody, "waiting"), else_="running")
    row = sa.select(*map(_given, ("id", "thread", "ts")), state, sa.literal(NOBODY, CleanText()))
    insert = INSERT[dialect](tickets).from_select(["id", "thread", "ts", "state", "owner"], row)
    # Of any index: PostgreSQL waits for another who is just taking the slot.
    return insert.on_conflict_do_nothing().returning(tickets.c.state)


@cache
def _waiting(dialect: str) -> sa.Executable:
    values = {name: _given(name) for name in ("id", "thread", "ts")}
    insert = INSERT[dialect](tickets).values(values | {"state": "waiting", "owner": NOBODY})
    return insert.on_conflict_do_nothing(index_elements=["id"])
