"""Looking after what a dispatch left running: its progress on the card, its end in the thread.

Orders are only asked about from here. Any replica may look; each look is one replica's.
"""

from typing import Final, Protocol

import structlog

from adapters.control_plane.port import AnswerKind, ControlAnswer, ControlOrder, where_to_look
from bot.actions.catalog import ActionCatalog
from bot.actions.display import ProposalDisplay
from bot.actions.effect import EffectCheck, begin_effect
from bot.actions.orders import Outcome, ended, line, order_of, outcome_of, progress_of, safe
from bot.actions.remind import reminder
from bot.domain.proposal import Proposal, ProposalState
from bot.ports.proposals import OnState, ProposalStore, Watch, Watches, WatchKind, uncounted
from tools.redactor import Redactor

log = structlog.stdlib.get_logger(__name__)

BATCH: Final = 20
AGAIN_S: Final = 15.0


class OrderStatus(Protocol):
    """The asking half of `ControlPlane`."""

    async def ask(self, order: ControlOrder) -> ControlAnswer: ...


class WatchSweep:
    """One look at everything that is due."""

    def __init__(
        self,
        watches: Watches,
        store: ProposalStore,
        catalog: ActionCatalog,
        status: OrderStatus,
        display: ProposalDisplay,
        redactor: Redactor,
        effect: EffectCheck,
        *,
        on_state: OnState = uncounted,
    ) -> None:
        self._watches = watches
        self._store = store
        self._catalog = catalog
        self._status = status
        self._display = display
        self._redactor = redactor
        self._effect = effect
        self._on_state = on_state

    async def run(self) -> int:
        """The number checked. Raises StorageUnavailable: a later sweep continues."""
        looked = 0
        for watch in await self._watches.claim(BATCH, AGAIN_S):
            await self._look(watch)
            looked += 1
        return looked

    async def _look(self, watch: Watch) -> None:
        row = await self._store.get(watch.proposal_id)
        if row is None:
            over = True
        elif watch.kind is WatchKind.REMINDER:
            over = await self._remind(row, is_late=watch.is_last)
        elif watch.kind is WatchKind.EFFECT:
            over = await self._effect.look(row, is_last=watch.is_last)
        else:
            over = await self._progress(row, is_last=watch.is_last)
        if over:
            await self._watches.end(watch)

    async def _remind(self, row: Proposal, *, is_late: bool) -> bool:
        """Once. A look that comes when it has expired says nothing: the expiry does."""
        if row.state is ProposalState.PENDING and not is_late:
            return await self._display.say(row.place, reminder(row), f"{row.id}:reminder")
        return True

    async def _progress(self, row: Proposal, *, is_last: bool) -> bool:
        if row.state is not ProposalState.DISPATCHING:
            await self._show_end(
                row
            )  # ended before, perhaps by a process that died before it reported
            return True
        order = order_of(self._catalog, row)
        if order is None:
            answer = ControlAnswer(AnswerKind.LOST, "the action is no longer declared")
        else:
            answer = safe(await self._status.ask(order), self._redactor)
        if answer.kind in (AnswerKind.RUNNING, AnswerKind.LOST) and not (is_last or order is None):
            await self._tell(row, answer)
            return False
        outcome = outcome_of(answer, "" if order is None else where_to_look(order))
        await self._end(row, outcome)
        return True

    async def _tell(self, row: Proposal, answer: ControlAnswer) -> None:
        progress = progress_of(answer)
        # A run that is not listed for a moment is no progress.
        if answer.kind is AnswerKind.RUNNING and progress != row.outcome:
            await self._watches.tell(row.id, progress)
            await self._display.refresh(row.id)

    async def _end(self, row: Proposal, outcome: Outcome) -> None:
        event = ended(row, outcome, row.decided_by or "")
        if outcome.state is ProposalState.SUCCEEDED:
            await begin_effect(self._watches, self._catalog, row)
        if await self._store.advance(row.id, row.state, outcome.state, outcome.text, event):
            self._on_state(outcome.state)
        now = await self._store.get(row.id)
        if now is not None:
            await self._show_end(now)

    async def _show_end(self, row: Proposal) -> None:
        await self._display.refresh(row.id)
        await self._display.say(row.place, line(row), f"{row.id}:outcome")
