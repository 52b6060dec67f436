"""Which confirmed proposals nobody carries on: the engine's word beside our rows."""

from collections.abc import Sequence

import sqlalchemy as sa

from bot.domain.ids import ProposalId
from bot.domain.proposal import ProposalState
from bot.ports.proposals import WatchKind, decision_workflow
from bot.store.columns import CleanText
from bot.store.connection import Connection
from bot.store.database import Database
from bot.store.tables import proposals, watches
from bot.store.tickets import ALIVE, workflow_status

_UNDER_WAY = (ProposalState.CONFIRMED.value, ProposalState.DISPATCHING.value)


class StrandedProposals:
    """Reads which proposals nobody carries on; changes nothing."""

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
            workflows.workflow_uuid == workflow_id, workflows.status.in_(ALIVE)
        )

        # Not stranded: its workflow is over because the order runs on, and that is looked after.
        watched = sa.exists().where(
            watches.c.proposal_id == proposals.c.id, watches.c.kind == WatchKind.PROGRESS.value
        )

        async def work(connection: Connection) -> Sequence[ProposalId]:
            found = await connection.scalars(
                sa.select(proposals.c.id)
                .where(proposals.c.state.in_(_UNDER_WAY), ~alive, ~watched)
                .order_by(proposals.c.decided_at, proposals.c.id)
                .limit(limit)
            )
            return [ProposalId(each) for each in found]

        return await self._database.fetch(work)
