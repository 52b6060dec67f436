"""The order of turns in a thread, and requests to stop them.

A ticket is a row per turn that waits or runs, under its workflow's id. The workflow inserts it as its
first act, before the platform gets its acknowledgement. The oldest message runs first; a unique index
over the running ones admits one turn of a thread. The owner of a workflow is read from DBOS's own
table: a replica that froze and was given up must neither take the slot nor release its successor's.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.columns import CleanText, EngineText
from bot.store.database import Database
from bot.store.dialect import INSERT, as_engines
from bot.store.tables import tickets, turn_steps, turns

HELD = "PENDING"  # the states of the engine's workflows: a process runs it,
QUEUED = "ENQUEUED"  # a process will,
_DELAYED = "DELAYED"  # or later
ALIVE = (HELD, QUEUED, _DELAYED)
# What has not ended, each part as an index of the engine's has it.
UNDER_WAY = sa.text("status IN ('ENQUEUED', 'PENDING')")
GOES_ON: Final = (UNDER_WAY, sa.text("status = 'DELAYED'"))
NO_OWNER = ""  # of tickets that an earlier release inserted before it started the workflow
# How a turn runs, for the count of its process's deaths; NULL, from earlier releases, means beside
# others.
_WAITS, _BESIDE, _ALONE = 0, 1, 2


class Superseded(Exception):
    """The workflow is no longer this replica's: cancelled, or taken over."""


class Attempt(NamedTuple):
    """A try to enter a thread. `is_first`: no attempt of this turn was here before."""

    entered: bool
    is_first: bool


@cache  # one table: parts of a statement that name it separately would be joined
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


class Deaths(NamedTuple):
    """Deaths of a turn's process since its last recorded step; `alone`: as the only suspect."""

    counted: int
    alone: int


class Tickets:
    """Turns of a thread one at a time. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._workflows = workflow_status(database.dialect)

    async def try_enter(self, ticket: str, thread: str, ts: str, owner: str) -> Attempt:
        """Take the thread's slot if it is this turn's, or queue for it.

        A turn that already has the slot, resumed here after a crash, keeps it. Raises Superseded.
        """
        is_first: bool | None = None  # as the first try saw it: a lost commit may be our own
        collided = False
        given = {"ticket": ticket, "mine": owner, "line": thread, "since": ts}

        async def work(connection: AsyncConnection) -> Attempt:
            nonlocal is_first
            dialect = connection.dialect.name
            if not collided:
                placed = await connection.scalar(_placing(dialect), given)
                if placed is not None:
                    is_first = True
                    return Attempt(placed == _RUNNING, is_first)
            if (await connection.execute(_held(dialect), given)).first() is None:
                raise Superseded(ticket)
            if is_first is None:
                before, begun = (await connection.execute(_BEFORE, given)).one()
                is_first = not begun if before is None else before == NO_OWNER
            await connection.execute(_enqueue(dialect), given)
            return Attempt(await _claim(connection, given), is_first)

        try:
            return await self._database.transact(work)
        except sa.exc.IntegrityError:  # another message of the thread got in at the same moment
            collided = True
            return await self._database.transact(work)

    async def is_placed(self, ticket: str) -> bool:
        """Whether the turn has a place in its thread, or needs none because its workflow is over."""

        found = await self._database.first(_placed(self._database.dialect), {"ticket": ticket})
        return found is not None

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
                other.c.state == _RUNNING,
                sa.tuple_(other.c.ts, other.c.id) < sa.tuple_(tickets.c.ts, tickets.c.id),
            ),
        )

        found = await self._database.scalars(
            sa.select(tickets.c.id).where(
                tickets.c.owner == owner, tickets.c.state == _WAITING, held, before
            )
        )
        return set(found)

    async def is_started(self, workflow: str) -> bool:
        """Whether the engine has that workflow, in any state."""

        return await self._database.scalar(self._any(workflow)) is not None

    async def leave(self, ticket: str, owner: str) -> bool:
        """Free the slot and delete the turn's steps, unless another replica has the workflow."""

        async def work(connection: AsyncConnection) -> bool:
            mine = {"ticket": ticket, "mine": owner}
            left = await connection.execute(_leaving(connection.dialect.name), mine)
            if left.rowcount != 1:
                return False
            await connection.execute(_FORGET, {"turns": [ticket]})
            return True

        return await self._database.transact(work)

    async def count_death(self, ticket: str) -> Deaths:
        """Count the death of the process that ran this turn. No death without a ticket.

        A turn that was handed over, or that waited for its trial, did not run when its process
        died. A turn that died waits for its trial from now on; others run at once.
        """
        in_engine = workflow_steps(self._database.dialect).c.workflow_uuid
        steps = _count(in_engine == ticket) + _count(turn_steps.c.turn_id == ticket)
        died = sa.func.coalesce(tickets.c.trial, _BESIDE) != _WAITS
        stuck = tickets.c.steps == steps
        before = sa.case((stuck, sa.func.coalesce(tickets.c.deaths, 0)), else_=0)
        # Releases before marked what they handed over with a negative number.
        deaths = sa.case((died, before + 1), (before > 0, before), else_=0)
        alone_before = sa.case((stuck, sa.func.coalesce(tickets.c.alone, 0)), else_=0)
        alone = sa.case(
            (sa.and_(stuck, tickets.c.trial == _ALONE), alone_before + 1), else_=alone_before
        )
        trial = sa.case((deaths > 0, _WAITS), else_=_BESIDE)
        counted = (
            tickets.update()
            .where(tickets.c.id == ticket)
            .values(deaths=deaths, alone=alone, steps=steps, trial=trial)
            .returning(tickets.c.deaths, tickets.c.alone)
        )

        async def work(connection: AsyncConnection) -> Deaths:
            found = (await connection.execute(counted)).first()
            return Deaths(*found) if found else Deaths(0, 0)

        return await self._database.transact(work)

    async def begin_trial(self, ticket: str, owner: str, *, is_alone: bool) -> None:
        """Mark whether the turn is the only suspect of this process, and that no other turn is."""
        state = _ALONE if is_alone else _BESIDE
        trial = sa.case((tickets.c.id == ticket, state), else_=_BESIDE)
        which = sa.or_(tickets.c.id == ticket, tickets.c.trial == _ALONE)

        mine = tickets.update().where(tickets.c.owner == owner, which)
        await self._database.execute(mine.values(trial=trial))

    async def clear_deaths(self, ticket: str, owner: str) -> None:
        """The turn made progress: a later death is its first."""

        mine = tickets.update().where(tickets.c.id == ticket, tickets.c.owner == owner)
        await self._database.execute(mine.values(trial=_BESIDE, deaths=0, alone=0))

    async def hand_over(self, owner: str) -> None:
        """Clear the deaths of this replica's turns, and let its own end count as none."""

        mine = tickets.update().where(tickets.c.owner == owner)
        await self._database.execute(mine.values(trial=_WAITS, deaths=0, alone=0))

    async def request_stop(self, ticket: str, by: str) -> bool:
        """Ask a turn to stop, waiting or running; False when it is neither. The first asker stays."""

        asked = await self._database.execute(
            tickets.update()
            .where(tickets.c.id == ticket)
            .values(stop_by=sa.func.coalesce(tickets.c.stop_by, by))
        )
        return asked == 1

    async def stops_for(self, owner: str) -> Mapping[str, str]:
        """This replica's turns that a person asked to stop, with that person's id."""

        found = await self._database.rows(_STOPPED, {"mine": owner})
        return {row.id: row.stop_by for row in found}

    async def drop_dead(self, among: Collection[str]) -> Sequence[str]:
        """Remove tickets of finished workflows; one would block its thread."""
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

    def _any(self, workflow: str) -> sa.Select[str]:
        workflows = self._workflows.c
        return sa.select(workflows.workflow_uuid).where(workflows.workflow_uuid == workflow)


_WAITING, _RUNNING = "waiting", "running"
_TICKET: Final = sa.bindparam("ticket", type_=CleanText())
_MINE: Final = sa.bindparam("mine", type_=CleanText())
# Not the columns' names: SQLAlchemy keeps those for itself.
_THREAD: Final = sa.bindparam("line", type_=CleanText())
_TS: Final = sa.bindparam("since", type_=CleanText())

_older = tickets.alias()
_BEFORE_MINE: Final = sa.tuple_(_older.c.ts, _older.c.id) < sa.tuple_(_TS, _TICKET)
_FIRST: Final = ~sa.exists().where(_older.c.thread == _THREAD, _BEFORE_MINE)
_CLAIM: Final = (
    tickets.update()
    .where(tickets.c.id == _TICKET, sa.or_(tickets.c.state == _RUNNING, _FIRST))
    .values(state=_RUNNING)
)


@cache
def _placed(dialect: str) -> sa.Select[Any]:
    workflows = workflow_status(dialect).c
    alive = sa.exists().where(
        workflows.workflow_uuid == as_engines(_TICKET), workflows.status.in_(ALIVE)
    )
    mine = sa.exists().where(tickets.c.id == _TICKET)
    return sa.select(sa.literal(1)).where(sa.or_(mine, ~alive))


@cache
def _held(dialect: str) -> sa.Select[str]:
    """The workflow while it is that owner's: locked, so that it cannot be handed over until the commit."""
    workflows = workflow_status(dialect).c
    return sa.select(workflows.workflow_uuid).where(*_is_held(dialect)).with_for_update(read=True)


def _is_held(dialect: str) -> Sequence[sa.ColumnElement[bool]]:
    workflows = workflow_status(dialect).c
    return (
        workflows.workflow_uuid == as_engines(_TICKET),
        workflows.executor_id == as_engines(_MINE),
        workflows.status == HELD,
    )


@cache
def _leaving(dialect: str) -> sa.Executable:
    workflows = workflow_status(dialect).c
    handed_over = sa.exists().where(
        workflows.workflow_uuid == as_engines(_TICKET),
        sa.or_(
            workflows.executor_id != as_engines(_MINE), workflows.status.in_((QUEUED, _DELAYED))
        ),
    )
    mine = (tickets.c.id == _TICKET, tickets.c.owner == _MINE)
    return tickets.delete().where(*mine, ~handed_over)


@cache
def _enqueue(dialect: str) -> sa.Executable:
    place = {"id": _TICKET, "owner": _MINE, "thread": _THREAD, "ts": _TS, "state": _WAITING}
    insert = INSERT[dialect](tickets).values(place)
    return insert.on_conflict_do_update(
        index_elements=["id"], set_={"owner": insert.excluded.owner}
    )


@cache
def _placing(dialect: str) -> sa.Executable:
    """Inserts the ticket of a turn that has never run, and returns its state: one statement.

    No row where the turn has a ticket, began before, or has lost its workflow.
    """
    in_front = sa.exists().where(
        _older.c.thread == _THREAD, sa.or_(_older.c.state == _RUNNING, _BEFORE_MINE)
    )
    began = sa.exists().where(turns.c.id == _TICKET)
    state = sa.case((in_front, _WAITING), else_=_RUNNING)
    place = {"id": _TICKET, "owner": _MINE, "thread": _THREAD, "ts": _TS, "state": state}
    mine = (*_is_held(dialect), ~began)
    row = sa.select(*place.values()).where(*mine).with_for_update(read=True)
    insert = INSERT[dialect](tickets).from_select(list(place), row)
    return insert.on_conflict_do_nothing(index_elements=["id"]).returning(tickets.c.state)


_FORGET: Final = turn_steps.delete().where(
    turn_steps.c.turn_id.in_(sa.bindparam("turns", expanding=True))
)
# Without a ticket a turn has not begun, or it left its thread just before its process died.
_BEFORE: Final = sa.select(
    sa.select(tickets.c.owner).where(tickets.c.id == _TICKET).scalar_subquery(),
    sa.exists().where(turns.c.id == _TICKET),
)
_STOPPED: Final = (
    sa.select(tickets.c.id, tickets.c.stop_by)
    .where(tickets.c.owner == _MINE, tickets.c.stop_by.is_not(None))
    .order_by(tickets.c.id)
)


def _count(condition: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.count()).where(condition).scalar_subquery()


async def _claim(connection: AsyncConnection, place: Mapping[str, str]) -> bool:
    try:
        # A savepoint: when a later message got in first, the conflict must not undo the ticket.
        async with connection.begin_nested():
            return (await connection.execute(_CLAIM, place)).rowcount == 1
    except sa.exc.IntegrityError:
        return False
