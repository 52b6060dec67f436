"""Turns and confirmed proposals without a running workflow, by the engine's rows and ours."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.ids import ChannelId, MessageTs, Place, ProposalId, TeamId, TurnId
from bot.domain.session import TurnState
from bot.ports.proposals import WatchKind, decision_workflow
from bot.store.columns import CleanText
from bot.store.database import Database
from bot.store.dialect import MOST, as_engines
from bot.store.tables import IS_UNDER_WAY, proposals, sessions, tickets, turns, watches
from bot.store.tickets import ALIVE, GOES_ON, workflow_status, workflow_steps

_DELIVERED: Final = "deliver"  # the last step of a turn; `bot.chat.turn`
# Its workflow was ended from outside, so people saw no end.
_CUT_OFF: Final = ("CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


@dataclass(frozen=True, slots=True)
class StrandedTurn:
    """A turn with a finished workflow.

    `is_told`: people have seen its end, only the record has not.
    """

    id: TurnId
    place: Place
    ts: MessageTs
    is_told: bool
    is_open: bool  # its row still says that it runs, or is missing


class StrandedTurns:
    """Read only. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, limit: int) -> Sequence[StrandedTurn]:
        """Turns that block their thread, then turns that still count as running."""

        async def work(connection: AsyncConnection) -> Sequence[StrandedTurn]:
            dialect = connection.dialect.name
            found = list((await connection.execute(_in_line(dialect), {"most": limit})).all())
            rest = {"most": limit - len(found)}
            found += (await connection.execute(_left(dialect), rest)).all()
            return [_stranded(row) for row in found]

        return await self._database.fetch(work)

    async def of_other_versions(self, known: Collection[str], limit: int) -> Sequence[str]:
        """Work that is to go on, and that none of these versions can carry on."""
        asked = {"known": list(known), "most": limit}

        found = await self._database.scalars(_of_other_replicas(self._database.dialect), asked)
        return sorted(found)


@cache
def _of_other_replicas(dialect: str) -> sa.Select[str]:
    mine = workflow_status(dialect).c
    known = sa.bindparam("known", type_=mine.application_version.type, expanding=True)
    unknown = mine.application_version.not_in(known)
    every = (sa.select(mine.workflow_uuid).where(is_, unknown) for is_ in GOES_ON)
    # In no order: to sort them, SQLite would read all workflows in that order.
    return sa.select(sa.union_all(*every).subquery().c.workflow_uuid).limit(MOST)


@cache
def _in_line(dialect: str) -> sa.Select[Any]:
    status, *rest = _how_far(dialect, tickets.c.id)
    return (
        sa.select(tickets.c.id, tickets.c.thread, tickets.c.ts, status.label("status"), *rest)
        .outerjoin(turns, turns.c.id == tickets.c.id)
        .where(status.not_in(ALIVE))
        .limit(MOST)
    )


@cache
def _left(dialect: str) -> sa.Select[Any]:
    status, *rest = _how_far(dialect, turns.c.id)
    ending = workflow_status(dialect).alias("ending")
    its_ending = sa.literal(ending_workflow(""), CleanText()).concat(turns.c.id)
    thread = sa.func.substr(sessions.c.id, len("session:") + 1).label("thread")
    return (
        sa.select(turns.c.id, thread, turns.c.ts, status.label("status"), *rest)
        .join(sessions, sessions.c.id == turns.c.session_id)
        .where(
            # As the index of running turns has it.
            turns.c.state == sa.literal_column(f"'{TurnState.RUNNING.value}'"),
            status.not_in(ALIVE),
            ~sa.exists().where(tickets.c.id == turns.c.id),
            ~sa.exists().where(ending.c.workflow_uuid == as_engines(its_ending)),
        )
        .limit(MOST)
    )


def _how_far(dialect: str, turn: sa.ColumnElement[str]) -> tuple[sa.ColumnElement[Any], ...]:
    """Asked of each turn: of a join, SQLite without statistics reads the workflows first."""
    mine, steps = workflow_status(dialect).c, workflow_steps(dialect).c
    status = sa.select(mine.status).where(mine.workflow_uuid == as_engines(turn))
    delivered = sa.exists().where(
        steps.workflow_uuid == as_engines(turn), steps.function_name == _DELIVERED
    )
    return status.scalar_subquery(), turns.c.state, delivered.label("delivered")


def ending_workflow(turn: str) -> str:
    """The id of the workflow that ends a stranded turn."""
    return f"ending:{turn}"


def _stranded(row: sa.Row[Any]) -> StrandedTurn:
    return StrandedTurn(
        TurnId(row.id),
        _place(row.thread),
        MessageTs(row.ts),
        _is_told(row.status, row.state, delivered=row.delivered),
        row.state in (None, TurnState.RUNNING.value),
    )


def _place(key: str) -> Place:
    team, channel, thread_ts = key.split(":", 2)
    return Place(TeamId(team), ChannelId(channel), MessageTs(thread_ts))


def _is_told(status: str, state: str | None, *, delivered: bool) -> bool:
    if status in _CUT_OFF:
        return delivered
    return state is not None or status == "SUCCESS"


class StrandedProposals:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._workflows = workflow_status(database.dialect)

    async def find(self, limit: int) -> Sequence[ProposalId]:
        """Confirmed or dispatching, and the deciding workflow is over; the oldest decision first.

        Raises StorageUnavailable.
        """
        workflows = self._workflows.c
        workflow_id = sa.literal(decision_workflow(""), CleanText()).concat(
            proposals.c.decision_key
        )
        alive = sa.exists().where(
            workflows.workflow_uuid == as_engines(workflow_id), workflows.status.in_(ALIVE)
        )

        # Not stranded: its workflow is over because the order runs on, and that is looked after.
        watched = sa.exists().where(
            watches.c.proposal_id == proposals.c.id, watches.c.kind == WatchKind.PROGRESS.value
        )

        found = await self._database.scalars(
            sa.select(proposals.c.id)
            .where(sa.text(IS_UNDER_WAY), ~alive, ~watched)
            .order_by(proposals.c.decided_at, proposals.c.id)
            .limit(limit)
        )
        return [ProposalId(each) for each in found]
