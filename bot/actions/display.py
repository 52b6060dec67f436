"""What people see of a proposal: its card, lines in the thread, a private word. Best effort.

A failure to show never undoes or blocks what the database says.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from bot.domain.ids import Place, ProposalId, UserId
from bot.domain.proposal import Proposal
from bot.ports import CardSurface, ProposalStore, SurfaceFailed, SurfaceGone

log = structlog.stdlib.get_logger(__name__)

RETRY_DELAYS_S: Final = (1.0, 2.0, 4.0)
CALL_TIMEOUT_S: Final = 10.0
# A row changes state at most three times (pending, confirmed, dispatching, an end), and before that
# once for every vote.
MAX_STATES: Final = 4

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class ProposalDisplay:
    """Shows proposals. Raises StorageUnavailable, nothing of the surface's."""

    def __init__(
        self, store: ProposalStore, surface: CardSurface, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._store = store
        self._surface = surface
        self._sleep = sleep

    async def refresh(self, proposal_id: ProposalId) -> bool:
        """Make the card tell the row's state; False when it cannot be shown.

        The row is read again after each write: of two writers that overlap, the one whose state
        was older notices and writes once more, so the card ends with the newest.
        """
        row = await self._store.get(proposal_id)
        if row is None:
            return False
        for _ in range(MAX_STATES + row.approvals):
            if not await self._show(row):
                return False
            after = await self._store.get(proposal_id)
            if after is None or (after.state, after.votes) == (row.state, row.votes):
                return True
            row = after
        return True

    async def say(self, place: Place, text: str, key: str) -> bool:
        """One line in the thread, once per `key`."""
        return await self._tried("say", lambda: self._surface.say(place, text, key)) is not None

    async def whisper(self, place: Place, user: UserId, text: str) -> None:
        """A private word."""
        await self._tried("whisper", lambda: self._surface.whisper(place, user, text))

    async def _show(self, row: Proposal) -> bool:
        ts = await self._tried("card", lambda: self._surface.show_card(row))
        if ts is None:
            return False
        if ts != row.card_ts:
            await self._store.set_card(row.id, ts)
        return True

    async def _tried(self, what: str, call: Callable[[], Awaitable[T]]) -> T | None:
        for delay_s in (*RETRY_DELAYS_S, None):
            try:
                async with asyncio.timeout(CALL_TIMEOUT_S):
                    return await call()
            except SurfaceGone:
                return None
            except (SurfaceFailed, TimeoutError) as error:
                retryable = not isinstance(error, SurfaceFailed) or error.retryable
                if delay_s is None or not retryable:
                    log.warning("proposal.not_shown", what=what, error=type(error).__name__)
                    return None
                await self._sleep(delay_s)
        return None
