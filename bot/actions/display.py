"""The views of a proposal: its card, lines in the thread, a private message. Best effort.

A failure to show never undoes or blocks the database's state. A card that differs from its row is
marked so in the database, and `CardSweep` redraws it until it is correct. After a long delay the
card comes with the line about its action's end.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import structlog

from bot.actions.orders import line
from bot.domain.chart import Chart
from bot.domain.ids import ChannelId, MessageTs, Place, ProposalId, TeamId, UserId
from bot.domain.proposal import Proposal, ProposalState
from bot.ports.failures import MessageGone, StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import CardSurface, PlatformTraits
from bot.ports.proposals import CardClaim, Cards

log = structlog.stdlib.get_logger(__name__)

RETRY_DELAYS_S: Final = (1.0, 2.0, 4.0)
CALL_TIMEOUT_S: Final = 10.0
TELL_TIMEOUT_S: Final = 40.0  # with the waits that a platform asks for
# Longer than a call: an edit that was given up on may still land, and nothing is painted under it.
CLAIM_CALLS: Final = 1.5
BATCH: Final = 10
# Between the sweep's tries: doubled up to the first, and the second after an hour of them.
_AGAIN_S: Final = (5.0, 60.0, 600.0)
_PATIENT_TRIES: Final = 60
_ENDS: Final = {
    ProposalState.SUCCEEDED,
    ProposalState.FAILED,
    ProposalState.UNKNOWN,
    ProposalState.SUPERSEDED,
}

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class ProposalDisplay:
    """Shows proposals. Raises StorageUnavailable, nothing of the surface's.

    One try to show a card is given up after `call_timeout_s`.
    """

    def __init__(
        self,
        cards: Cards,
        surface: CardSurface,
        *,
        call_timeout_s: float = CALL_TIMEOUT_S,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._cards = cards
        self._surface = surface
        self._call_timeout_s = call_timeout_s
        self._claim_s = CLAIM_CALLS * call_timeout_s
        self._sleep = sleep

    async def refresh(
        self, proposal_id: ProposalId, delays_s: Sequence[float] = RETRY_DELAYS_S
    ) -> bool:
        """Update the card to the row's state; nothing is sent if it is current.

        One writer at a time, over all replicas; it redraws while the row changes. False when the
        card cannot be shown now; a sweep will show it.
        """
        waits = [*delays_s]
        while (claim := await self._cards.claim(proposal_id, self._claim_s)) is not None:
            painted = await self._painted(claim, may_retry=bool(waits))
            if painted is None:
                await self._sleep(waits.pop(0))
            elif not painted:
                return False
            elif claim.tries > 1:
                await self._say_end(claim.proposal)
        return True

    @property
    def traits(self) -> PlatformTraits:
        return self._surface.traits

    async def show_unstored(self, proposal: Proposal) -> None:
        """Show a proposal once that no person can decide; it has no card to keep current."""
        await self._told("unstored", self._surface.show_card(proposal))

    async def say(self, place: Place, text: str, key: str, charts: Sequence[Chart] = ()) -> bool:
        return await self._told("say", self._surface.say(place, text, key, charts)) is not None

    async def whisper(self, place: Place, user: UserId, text: str) -> None:
        await self._told("whisper", self._surface.whisper(place, user, text))

    async def _say_end(self, row: Proposal) -> None:
        """What kept the card from being shown kept the line from being said; once per proposal."""
        if row.outcome and row.state in _ENDS:
            await self.say(row.place, line(row), f"{row.id}:outcome")

    async def _painted(self, claim: CardClaim, *, may_retry: bool) -> bool | None:
        """Whether the card shows the claimed state; None when another try is worthwhile at once."""
        try:
            async with asyncio.timeout(self._call_timeout_s):
                ts = await self._surface.show_card(claim.proposal)
        except MessageGone:
            ts = claim.proposal.card_ts or MessageTs("")  # there is no card that could lie
        except (SurfaceGone, SurfaceFailed) as error:
            log.info("proposal.card.retry_scheduled", proposal=claim.proposal.id, error=str(error))
            soon = may_retry and isinstance(error, SurfaceFailed) and error.retryable
            await self._cards.failed(claim, 0.0 if soon else _later_s(claim.tries))
            return None if soon else False
        except TimeoutError:
            log.warning("proposal.card.unconfirmed", proposal=claim.proposal.id)
            return False
        await self._cards.showed(claim, ts)
        return True

    async def _told(self, what: str, call: Awaitable[T]) -> T | None:
        try:
            async with asyncio.timeout(TELL_TIMEOUT_S):
                return await call
        except SurfaceGone:
            return None
        except (SurfaceFailed, TimeoutError) as error:
            log.warning("proposal.not_shown", what=what, error=type(error).__name__)
            return None


class CardSweep:
    """Paints what differs from its row. Any number of replicas may sweep at once."""

    def __init__(self, cards: Cards, display: ProposalDisplay) -> None:
        self._cards = cards
        self._display = display

    async def run(self) -> int:
        """How many were tried. Raises StorageUnavailable."""
        due = await self._cards.due(BATCH)
        await self.paint(due)
        return len(due)

    async def in_reach(self, team: TeamId, channel: ChannelId) -> Sequence[ProposalId]:
        return await self._cards.in_reach(team, channel, BATCH)

    async def paint(self, cards: Sequence[ProposalId]) -> None:
        """Redraw the cards that no other replica redraws, all at once."""
        async with asyncio.TaskGroup() as group:
            for proposal_id in cards:
                group.create_task(self._paint(proposal_id))

    async def _paint(self, proposal_id: ProposalId) -> None:
        with suppress(StorageUnavailable):  # a later sweep's
            await self._display.refresh(proposal_id, ())


def _later_s(tries: int) -> float:
    first, most, at_last = _AGAIN_S
    if tries > _PATIENT_TRIES:
        return at_last
    return min(math.ldexp(first, min(tries, 8)), most)
