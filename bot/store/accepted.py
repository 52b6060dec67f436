"""Messages that were accepted and whose workflow is not begun yet: an inbox of a few milliseconds.

A row is there before a platform is told that its message was taken, in one short transaction with
the place in the thread. It goes when the turn enters its thread; what is left behind by a process
that ended in between is begun by whoever looks next.
"""

from collections.abc import Mapping

import sqlalchemy as sa

from bot.store.accepted_table import accepted
from bot.store.columns import CleanText
from bot.store.database import Database
from bot.store.dialect import Connection, as_engines, insert_into
from bot.store.tables import tickets
from bot.store.tickets import NOBODY, workflow_status


class Accepted:
    """Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._workflows = workflow_status(database.dialect)

    async def accept(self, turn: str, thread: str, ts: str, ask: str) -> bool:
        """Keep the ask (JSON), with its place in the thread's line.

        False, and nothing is written, when it was accepted before, here or on another replica.
        """
        lost = False  # a commit whose answer did not come: what is there already may be ours

        async def work(connection: Connection) -> bool:
            nonlocal lost
            again, lost = lost, True
            if not await self._kept(connection, turn, ask):
                return again
            await connection.execute(
                insert_into(connection, tickets)
                .values(id=turn, thread=thread, ts=ts, state="waiting", owner=NOBODY)
                .on_conflict_do_nothing(index_elements=["id"])
            )
            return True

        return await self._database.transact(work)

    async def left(self) -> Mapping[str, str]:
        """The asks (JSON), by turn, that no workflow answers yet. Rows of all others are removed."""
        workflows = self._workflows.c
        its_own = workflows.workflow_uuid == as_engines(accepted.c.id)
        every = accepted.outerjoin(self._workflows, its_own)

        async def look(connection: Connection) -> Mapping[str, str | None]:
            found = await connection.execute(
                sa.select(accepted.c.id, accepted.c.ask, workflows.workflow_uuid).select_from(every)
            )
            return {row.id: None if row.workflow_uuid else row.ask for row in found}

        async def remove(connection: Connection) -> None:
            await connection.execute(accepted.delete().where(sa.exists().where(its_own)))

        found = await self._database.fetch(look)
        if None in found.values():
            await self._database.transact(remove)
        return {turn: ask for turn, ask in found.items() if ask is not None}

    async def _kept(self, connection: Connection, turn: str, ask: str) -> bool:
        known = sa.exists().where(self._workflows.c.workflow_uuid == turn)
        row = sa.select(sa.literal(turn, CleanText()), sa.literal(ask, CleanText())).where(~known)
        kept = await connection.execute(
            insert_into(connection, accepted)
            .from_select(["id", "ask"], row)
            .on_conflict_do_nothing(index_elements=["id"])
        )
        return kept.rowcount == 1
