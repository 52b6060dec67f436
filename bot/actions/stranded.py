"""End the remains of a dead decision: a confirmed proposal whose workflow will not continue.

A workflow dies when the database is away longer than its timeout, or when its process dies at it
repeatedly. Nothing is sent from here.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from adapters.control_plane.port import AnswerKind, ControlAnswer
from bot.actions.display import ProposalDisplay
from bot.actions.orders import ended, line, outcome_of
from bot.domain.ids import ProposalId
from bot.domain.proposal import ProposalState
from bot.ports.proposals import OnState, ProposalStore, uncounted

log = structlog.stdlib.get_logger(__name__)

BATCH: Final = 100
# Only a workflow that wrote its intent (dispatching) can have sent anything.
_ENDS: Final = {
    ProposalState.CONFIRMED: outcome_of(
        ControlAnswer(AnswerKind.NOT_SENT, "Kortex gave up before it sent the order")
    ),
    ProposalState.DISPATCHING: outcome_of(
        ControlAnswer(AnswerKind.LOST, "Kortex gave up after it may have sent the order")
    ),
}

# Confirmed or dispatching proposals without a running decision, at most so many.
Find = Callable[[int], Awaitable[Sequence[ProposalId]]]


class StrandedSweep:
    """Ends them truthfully. Idempotent: of any number of replicas one ends each."""

    def __init__(
        self,
        find: Find,
        store: ProposalStore,
        display: ProposalDisplay,
        *,
        on_state: OnState = uncounted,
    ) -> None:
        self._find = find
        self._store = store
        self._display = display
        self._on_state = on_state

    async def run(self) -> int:
        """The number ended. Raises StorageUnavailable: the next sweep continues."""
        ended = 0
        for proposal_id in await self._find(BATCH):
            ended += await self._end(proposal_id)
        return ended

    async def _end(self, proposal_id: ProposalId) -> bool:
        row = await self._store.get(proposal_id)
        outcome = None if row is None else _ENDS.get(row.state)
        if row is None or outcome is None:
            return False
        event = ended(row, outcome, "clock")
        if not await self._store.advance(row.id, row.state, outcome.state, outcome.text, event):
            return False
        log.error("proposal.stranded", proposal=row.id, was=row.state.value)
        self._on_state(outcome.state)
        await self._show(row.id)
        return True

    async def _show(self, proposal_id: ProposalId) -> None:
        await self._display.refresh(proposal_id)
        row = await self._store.get(proposal_id)
        if row is not None:
            await self._display.say(row.place, line(row), f"{row.id}:outcome")
