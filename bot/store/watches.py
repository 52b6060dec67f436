"""`bot.ports.proposals.Watches` in the database: who looks is one compare-and-set on the database's clock."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.ids import ProposalId
from bot.domain.proposal import ProposalState
from bot.ports.proposals import Watch, WatchKind
from bot.store.database import Database
from bot.store.dialect import MOST, seconds_ago
from bot.store.proposal_rows import REPAINT
from bot.store.tables import proposals, watches

DUE: Final = (
    sa.select(watches, (watches.c.until_at <= seconds_ago(0)).label("is_last"))
    .where(watches.c.due_at <= seconds_ago(0))
    .order_by(watches.c.due_at, watches.c.proposal_id)
    .limit(MOST)
)


class StoredWatches:
    """One row per thing to look at."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, proposal_id: ProposalId, kind: WatchKind, first_s: float, for_s: float
    ) -> None:
        """Look after that order from now on; again is no second row."""

        await self._database.execute(
            self._database.insert(watches)
            .values(
                proposal_id=proposal_id,
                kind=kind.value,
                due_at=seconds_ago(-first_s),
                until_at=seconds_ago(-for_s),
            )
            .on_conflict_do_nothing(index_elements=["proposal_id", "kind"])
        )

    async def claim(self, limit: int, again_s: float) -> Sequence[Watch]:
        """The longest due first."""

        rows = await self._database.rows(DUE, {"most": limit})
        if not rows:
            return []  # no write transaction for every tick

        async def work(connection: AsyncConnection) -> Sequence[Watch]:
            claimed = []
            for row in rows:
                won = await connection.execute(
                    watches.update()
                    .where(
                        watches.c.proposal_id == row.proposal_id,
                        watches.c.kind == row.kind,
                        watches.c.due_at == row.due_at,
                    )
                    .values(due_at=seconds_ago(-again_s))
                )
                if won.rowcount == 1:
                    kind = WatchKind(row.kind)
                    claimed.append(Watch(ProposalId(row.proposal_id), kind, bool(row.is_last)))
            return claimed

        return await self._database.transact(work)

    async def end(self, watch: Watch) -> None:
        """Look after it no more: delete its row."""

        await self._database.execute(
            watches.delete().where(
                watches.c.proposal_id == watch.proposal_id, watches.c.kind == watch.kind.value
            )
        )

    async def tell(self, proposal_id: ProposalId, progress: str) -> None:
        """Only while it runs: an end is not overwritten."""

        await self._database.execute(
            proposals.update()
            .where(
                proposals.c.id == proposal_id,
                proposals.c.state == ProposalState.DISPATCHING.value,
            )
            .values({"outcome": progress, **REPAINT})
        )
