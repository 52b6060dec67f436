"""Telling cards that their time is up. The row's `expires_at` is the truth; this only shows it."""

from typing import Final

import structlog

from bot.domain.ids import ProposalId
from bot.domain.proposal import ProposalState
from bot.ports.durability import Workflows
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import Decision, ProposalStore

log = structlog.stdlib.get_logger(__name__)

BATCH: Final = 100


def expiry(proposal_id: ProposalId) -> Decision:
    """The clock's decision; the same on every replica."""
    return Decision(ProposalState.EXPIRED, "clock", f"{proposal_id}:expired")


class ExpirySweep:
    """Starts the expiry of what is due. Idempotent: any number of replicas may sweep at once."""

    def __init__(self, store: ProposalStore, workflows: Workflows, *, batch: int = BATCH) -> None:
        self._store = store
        self._workflows = workflows
        self._batch = batch

    async def run(self) -> int:
        """How many were started; what is left, or cannot be reached now, is the next sweep's."""
        started = 0
        try:
            for proposal_id in await self._store.due(self._batch):
                await self._workflows.start_decision(proposal_id, expiry(proposal_id))
                started += 1
        except StorageUnavailable:
            log.warning("proposals.expiry.storage_unavailable", started=started)
        return started
