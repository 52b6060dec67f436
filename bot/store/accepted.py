"""Starts that an earlier release left half-done: accepted messages and tickets without a workflow.

Earlier releases stored a message and its ticket before they started the workflow. This release starts
the workflow first and writes no such rows. It still reads them, because a process of an earlier
release may have died between the two.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import sqlalchemy as sa

from bot.store.database import Database
from bot.store.dialect import as_engines
from bot.store.tables import accepted, tickets
from bot.store.tickets import workflow_status


class HalfStarted:
    """Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accepted(self) -> Mapping[str, str]:
        """The asks (JSON) without a workflow, by turn. Removes the rows of all other turns."""

        dialect = self._database.dialect
        found = await self._database.rows(_every(dialect))
        if any(row.workflow_uuid for row in found):
            is_begun = _is_begun(workflow_status(dialect))
            await self._database.execute(accepted.delete().where(sa.exists().where(is_begun)))
        return {row.id: row.ask for row in found if not row.workflow_uuid}

    async def drop_tickets(self, before: Collection[str]) -> Collection[str]:
        """Remove those of `before` that have neither a workflow nor an ask; return other such ones.

        The platform delivers these messages again, because they were never acknowledged.
        """

        dialect = self._database.dialect
        found = set(await self._database.scalars(_unstarted(dialect)))
        if gone := found & set(before):
            mine = tickets.delete().where(tickets.c.id.in_(gone))
            await self._database.execute(mine.where(*_is_unstarted(dialect)))
        return found - gone


def _is_begun(workflows: sa.TableClause) -> sa.ColumnElement[bool]:
    return workflows.c.workflow_uuid == as_engines(accepted.c.id)


@cache
def _every(dialect: str) -> sa.Select[str, str, str]:
    workflows = workflow_status(dialect)
    every = accepted.outerjoin(workflows, _is_begun(workflows))
    asked = sa.select(accepted.c.id, accepted.c.ask, workflows.c.workflow_uuid)
    return asked.select_from(every)


def _is_unstarted(dialect: str) -> Sequence[sa.ColumnElement[bool]]:
    its_own = workflow_status(dialect).c.workflow_uuid == as_engines(tickets.c.id)
    return ~sa.exists().where(its_own), ~sa.exists().where(accepted.c.id == tickets.c.id)


@cache
def _unstarted(dialect: str) -> sa.Select[str]:
    return sa.select(tickets.c.id).where(*_is_unstarted(dialect))
