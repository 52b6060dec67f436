"""The order of turns in a thread, and requests to stop them.

A ticket is a row per turn that waits or runs, under its workflow's id. It is there before Slack is
acknowledged (`bot.store.accepted`), in a thread where nobody is with the slot, and without an owner
until an attempt of the turn comes for it. The oldest message runs first; a unique index over the
running ones lets no second turn of a thread in. Who owns a workflow now is read from the engine's
own table: a replica that was frozen and given up must neither take the slot nor release its
successor's.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.accepted_table import accepted
from bot.store.columns import CleanText, EngineText
from bot.store.database import Database
from bot.store.dialect import INSERT, Work, as_engines
from bot.store.tables import tickets
from bot.store.turn_step_table import turn_steps

HELD = "PENDING"  # the states of the engine's workflows: somebody runs it,
QUEUED = "ENQUEUED"  # somebody will,
_DELAYED = "DELAYED"  # or later
ALIVE = (HELD, QUEUED, _DELAYED)
# What has not ended, each part as an index of the engine's has it.
UNDER_WAY = sa.text("status IN ('ENQUEUED', 'PENDING')")
GOES_ON: Final = (UNDER_WAY, sa.text("status = 'DELAYED'"))
OWN_QUEUE = "_dbos_internal_queue"  # the engine's, of work that is carried on
NOBODY = ""
_HANDED_OVER = -1


class Superseded(Exception):
    """The workflow is no longer this replica's: cancelled, or taken over."""


def workflow_status(dialect: str) -> sa.TableClause:
    """The engine's table of workflows: in the same SQLite file, in its own PostgreSQL schema."""
    return sa.table(
        "workflow_status",
        sa.column("workflow_uuid", EngineText()),
        sa.column("executor_id", EngineText()),
        sa.column("status", EngineText()),
        sa.column("queue_name", EngineText()),
        sa.column("application_version", EngineText()),
        schema="dbos" if dialect == "postgresql" else None,
    )


def workflow_steps(dialect: str) -> sa.TableClause:
    """The engine's table of finished steps, beside `workflow_status`."""
    return sa.table(
        "operation_outputs",
        sa.column("workflow_uuid", EngineText()),
        sa.column("function_id", sa.Integer()),
        sa.column("function_name", EngineText()),
        schema="dbos" if dialect == "postgresql" else None,
    )


class Tickets:
    """Turns of a thread one at a time. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._workflows = workflow_status(database.dialect)

    async def try_enter(self, ticket: str, thread: str, ts: str, owner: str) -> bool:
        """Take the thread's slot if it is this turn's; False while others are before it.

        A turn that already has the slot, resumed here after a crash, keeps it. Raises Superseded.
        """

        async def work(connection: AsyncConnection) -> bool:
            dialect, mine = connection.dialect.name, {"ticket": ticket, "mine": owner}
            if (await connection.execute(_held(dialect), mine)).first() is None:
                raise Superseded(ticket)
            place = {"thread": thread, "ts": ts}
            await connection.execute(_standing(dialect), mine | place)
            await connection.execute(_BEGUN, {"ticket": ticket})
            return await _claim(connection, {"ticket": ticket, "line": thread, "since": ts})

        return await self._database.transact(work)

    def entry(self, ticket: str, owner: str) -> Work[None]:
        """Takes the slot that was kept for the turn as its message was accepted. Raises Superseded."""

        async def work(connection: AsyncConnection) -> None:
            mine = {"ticket": ticket, "mine": owner}
            taken = await connection.execute(_entering(connection.dialect.name), mine)
            if taken.rowcount != 1:
                raise Superseded(ticket)
            await connection.execute(_BEGUN, {"ticket": ticket})

        return work

    async def blocked(self, owner: str) -> Collection[str]:
        """Those of this replica for which a try to enter would change nothing now."""
        workflows = self._workflows.c
        other = tickets.alias()
        held = sa.exists().where(
            workflows.workflow_uuid == as_engines(tickets.c.id),
            workflows.executor_id == owner,
            workflows.status == HELD,
        )
        before = sa.exists().where(
            other.c.thread == tickets.c.thread,
            other.c.id != tickets.c.id,
            sa.or_(
                other.c.state == "running",
                sa.tuple_(other.c.ts, other.c.id) < sa.tuple_(tickets.c.ts, tickets.c.id),
            ),
        )

        async def work(connection: AsyncConnection) -> Collection[str]:
            found = await connection.scalars(
                sa.select(tickets.c.id).where(
                    tickets.c.owner == owner, tickets.c.state == "waiting", held, before
                )
            )
            return set(found.all())

        return await self._database.fetch(work)

    async def is_started(self, workflow: str) -> bool:
        """Whether the engine has that workflow, in whatever state."""

        async def work(connection: AsyncConnection) -> bool:
            return await connection.scalar(self._any(workflow)) is not None

        return await self._database.fetch(work)

    async def is_fresh(self, ticket: str) -> bool:
        """Whether it is certain that no attempt of this turn has been here, on any replica."""

        async def work(connection: AsyncConnection) -> bool:
            found = await connection.execute(_OWNER_OF, {"ticket": ticket})
            return bool(found.scalar() == NOBODY)

        return await self._database.fetch(work)

    async def leave(self, ticket: str, owner: str) -> bool:
        """Free the slot, unless the workflow was given to somebody else meanwhile.

        What is on record of the turn goes with it: it has nothing left to do.
        """

        async def work(connection: AsyncConnection) -> bool:
            mine = {"ticket": ticket, "mine": owner}
            left = await connection.execute(_leaving(connection.dialect.name), mine)
            if left.rowcount != 1:
                return False
            await connection.execute(_FORGET, {"turns": [ticket]})
            return True

        return await self._database.transact(work)

    async def count_death(self, ticket: str) -> int:
        """Whoever ran this turn has died; how often that was with as many finished steps as now.

        A replica that handed it over did not die. 0 without a ticket.
        """
        in_engine = workflow_steps(self._database.dialect).c.workflow_uuid
        steps = _count(in_engine == ticket) + _count(turn_steps.c.turn_id == ticket)
        counted = sa.case(
            (tickets.c.deaths == _HANDED_OVER, 0),
            (tickets.c.steps == steps, tickets.c.deaths + 1),
            else_=1,
        )

        async def work(connection: AsyncConnection) -> int:
            deaths = await connection.scalar(
                tickets.update()
                .where(tickets.c.id == ticket)
                .values(deaths=counted, steps=steps)
                .returning(tickets.c.deaths)
            )
            return deaths or 0

        return await self._database.transact(work)

    async def hand_over(self, owner: str) -> None:
        """This replica ends as it should: what it leaves behind is not counted as a death."""

        async def work(connection: AsyncConnection) -> None:
            mine = tickets.update().where(tickets.c.owner == owner)
            await connection.execute(mine.values(deaths=_HANDED_OVER))

        await self._database.transact(work)

    async def request_stop(self, ticket: str, by: str) -> bool:
        """Ask a turn to stop, waiting or running; False when it is neither. The first asker stays."""

        async def work(connection: AsyncConnection) -> bool:
            asked = await connection.execute(
                tickets.update()
                .where(tickets.c.id == ticket)
                .values(stop_by=sa.func.coalesce(tickets.c.stop_by, by))
            )
            return asked.rowcount == 1

        return await self._database.transact(work)

    async def stops_for(self, owner: str) -> Mapping[str, str]:
        """The turns that somebody asked to stop, and who: this replica's, and those just beginning."""

        async def work(connection: AsyncConnection) -> Mapping[str, str]:
            found = await connection.execute(_STOPPED, {"mine": owner})
            return {row.id: row.stop_by for row in found}

        return await self._database.fetch(work)

    async def drop_dead(self, among: Collection[str]) -> Sequence[str]:
        """Remove those of them whose workflow is over; otherwise one would block its thread."""
        workflows = self._workflows.c
        over = sa.exists().where(
            workflows.workflow_uuid == as_engines(tickets.c.id), workflows.status.not_in(ALIVE)
        )

        async def work(connection: AsyncConnection) -> Sequence[str]:
            mine = tickets.delete().where(tickets.c.id.in_(among), over)
            gone = (await connection.scalars(mine.returning(tickets.c.id))).all()
            await connection.execute(_FORGET, {"turns": gone})
            return gone

        return await self._database.transact(work) if among else ()

    async def drop_unstarted(self, before: Collection[str]) -> Collection[str]:
        """Remove those of `before` that nobody will begin; returns all others of which that is so.

        Such a one is of a release that kept no ask with it: it is being started, or its process died
        before it was, and Slack, which had no answer, delivers that message again.
        """

        async def look(connection: AsyncConnection) -> Collection[str]:
            return set((await connection.execute(_unstarted(connection.dialect.name))).scalars())

        async def remove(connection: AsyncConnection) -> None:
            mine = tickets.delete().where(tickets.c.id.in_(gone))
            await connection.execute(mine.where(*_is_unstarted(connection.dialect.name)))

        found = set(await self._database.fetch(look))
        if gone := found & set(before):
            await self._database.transact(remove)
        return found - gone

    def _any(self, workflow: str) -> sa.Select[str]:
        workflows = self._workflows.c
        return sa.select(workflows.workflow_uuid).where(workflows.workflow_uuid == workflow)


_TICKET: Final = sa.bindparam("ticket", type_=CleanText())
_MINE: Final = sa.bindparam("mine", type_=CleanText())
_BEGUN: Final = accepted.delete().where(accepted.c.id == _TICKET)


@cache
def _entering(dialect: str) -> sa.Executable:
    """Takes a slot that nobody has, or this owner had; the workflow is this owner's until the commit."""
    return (
        tickets.update()
        .where(
            tickets.c.id == _TICKET,
            tickets.c.state == "running",
            tickets.c.owner.in_([NOBODY, _MINE]),
            sa.exists(_held(dialect)),
        )
        .values(owner=_MINE)
    )


@cache
def _held(dialect: str) -> sa.Select[str]:
    """The workflow while it is that owner's: locked, so that it cannot be handed over until the commit."""
    workflows = workflow_status(dialect).c
    return (
        sa.select(workflows.workflow_uuid)
        .where(
            workflows.workflow_uuid == as_engines(_TICKET),
            workflows.executor_id == as_engines(_MINE),
            workflows.status == HELD,
        )
        .with_for_update(read=True)
    )


@cache
def _leaving(dialect: str) -> sa.Executable:
    """Deletes a ticket, unless its workflow was given to somebody else."""
    workflows = workflow_status(dialect).c
    handed_over = sa.exists().where(
        workflows.workflow_uuid == as_engines(_TICKET),
        sa.or_(
            workflows.executor_id != as_engines(_MINE), workflows.status.in_((QUEUED, _DELAYED))
        ),
    )
    # Nobody's: it ended before its first transaction.
    whose = tickets.c.owner.in_([_MINE, NOBODY])
    return tickets.delete().where(tickets.c.id == _TICKET, whose, ~handed_over)


@cache
def _standing(dialect: str) -> sa.Executable:
    """Inserts a waiting ticket, or makes the one that is there this owner's."""
    place = {"id": _TICKET, "owner": _MINE, "state": "waiting"}
    place |= {name: sa.bindparam(name, type_=CleanText()) for name in ("thread", "ts")}
    insert = INSERT[dialect](tickets).values(place)
    return insert.on_conflict_do_update(
        index_elements=["id"], set_={"owner": insert.excluded.owner}
    )


def _is_unstarted(dialect: str) -> Sequence[sa.ColumnElement[bool]]:
    its_own = workflow_status(dialect).c.workflow_uuid == as_engines(tickets.c.id)
    return ~sa.exists().where(its_own), ~sa.exists().where(accepted.c.id == tickets.c.id)


@cache
def _unstarted(dialect: str) -> sa.Select[str]:
    return sa.select(tickets.c.id).where(*_is_unstarted(dialect))


_FORGET: Final = turn_steps.delete().where(
    turn_steps.c.turn_id.in_(sa.bindparam("turns", expanding=True))
)
_OWNER_OF: Final = sa.select(tickets.c.owner).where(tickets.c.id == _TICKET)
_STOPPED: Final = (
    sa.select(tickets.c.id, tickets.c.stop_by)
    .where(tickets.c.owner.in_([NOBODY, _MINE]), tickets.c.stop_by.is_not(None))
    .order_by(tickets.c.id)
)


def _count(condition: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.count()).where(condition).scalar_subquery()


_older = tickets.alias()
_FIRST: Final = ~sa.exists().where(
    _older.c.thread == sa.bindparam("line", type_=CleanText()),
    sa.tuple_(_older.c.ts, _older.c.id)
    < sa.tuple_(sa.bindparam("since", type_=CleanText()), _TICKET),
)
_CLAIM: Final = (
    tickets.update()
    .where(tickets.c.id == _TICKET, sa.or_(tickets.c.state == "running", _FIRST))
    .values(state="running")
)


async def _claim(connection: AsyncConnection, place: Mapping[str, str]) -> bool:
    try:
        # A savepoint: when a later message got in first, the conflict must not undo the ticket.
        async with connection.begin_nested():
            return (await connection.execute(_CLAIM, place)).rowcount == 1
    except sa.exc.IntegrityError:
        return False
