"""Work begun under earlier versions of the steps, as the workflow engine has it; this one carries it on."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from bot.store.database import Database
from bot.store.tickets import HELD, QUEUED, UNDER_WAY, workflow_status


class EarlierWork:
    """Every method raises StorageUnavailable. The engine gives work to processes of its version
    alone.

    A process of an earlier version keeps none of the work taken here.
    """

    def __init__(self, database: Database, version: str, earlier: Collection[str]) -> None:
        self._database = database
        self._workflows = workflow_status(database.dialect)
        self._version = version
        self.versions = frozenset(earlier)

    async def held_by(self, executor: str) -> Sequence[str]:
        """What that executor held under an earlier version."""
        mine = self._workflows.c
        held = sa.select(mine.workflow_uuid).where(
            mine.executor_id == executor,
            mine.status == HELD,
            mine.application_version.in_(self.versions),
        )

        return await self._database.scalars(held)

    async def take(self, workflows: Sequence[str]) -> None:
        """The workflows that were held: they belong to this version from now on."""
        if workflows:
            mine = self._workflows.c
            await self._take(mine.workflow_uuid.in_(workflows), mine.status == HELD)

    async def take_queued(self, alive: Collection[str | None]) -> int:
        """What waits for a process of an earlier version, but for those `alive`; how many."""
        orphaned = self.versions.difference(alive)
        mine = self._workflows.c
        return await self._take(
            mine.application_version.in_(orphaned), UNDER_WAY, mine.status == QUEUED
        )

    async def _take(self, *which: sa.ColumnElement[bool] | sa.TextClause) -> int:
        which = (self._workflows.c.application_version.in_(self.versions), *which)
        any_of_it = sa.select(self._workflows.c.workflow_uuid).where(*which).limit(1)
        taken = sa.update(self._workflows).where(*which)

        if await self._database.scalar(any_of_it) is None:
            return 0
        return await self._database.execute(taken.values(application_version=self._version))
