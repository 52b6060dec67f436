"""Which cards differ from their row, and whose turn it is to paint: what the display asks of rows.

Implementation: `bot.store.cards`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.domain.ids import MessageTs, ProposalId
from bot.domain.proposal import Proposal


@dataclass(frozen=True, slots=True)
class CardClaim:
    """Leave to paint one card until then. `wanted` is which of the row's changes it will show."""

    proposal: Proposal
    wanted: int
    until: datetime
    tries: int


class Cards(Protocol):
    """Which cards differ from their row. Every method raises StorageUnavailable."""

    async def claim(self, proposal_id: ProposalId, for_s: float) -> CardClaim | None:
        """Paint it now; None when it is true, or somebody paints it, or it waits for another try."""
        ...

    async def showed(self, claim: CardClaim, ts: MessageTs) -> None:
        """The chat shows what was claimed, in that message. Late, it is to be painted once more."""
        ...

    async def failed(self, claim: CardClaim, again_s: float) -> None:
        """It could not be painted; it may be claimed again after so many seconds."""
        ...

    async def due(self, limit: int) -> Sequence[ProposalId]:
        """Those that differ and that nobody paints, longest waiting first."""
        ...

    async def pressed(self, proposal_id: ProposalId, ts: MessageTs) -> None:
        """A button on that message was pressed: it is the card's, and it can be reached."""
        ...
