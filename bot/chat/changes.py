"""What became of a turn's proposals, for a turn that failed after it had made some."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, assert_never

import structlog

from bot.domain.ids import SessionId, TurnId, session_at
from bot.domain.proposal import (
    ONE_ORDER,
    REHEARSED,
    Proposal,
    ProposalState,
    is_rehearsal,
    refused_by,
)
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable

log = structlog.get_logger(__name__)

NOT_READ: Final = (
    "Kortex could not read the state of this question's proposals. Check their cards before you "
    "ask again."
)

# The proposals of a session, oldest first. Raises StorageUnavailable.
ProposalsOf = Callable[[SessionId], Awaitable[Sequence[Proposal]]]


async def no_proposals(_session: SessionId) -> Sequence[Proposal]:
    """None, where no actions are declared."""
    return ()


async def changes_of(ask: Ask, proposals_of: ProposalsOf) -> str:
    """One sentence for each proposal of the turn; empty when it made none. Raises nothing of its own.

    Without the database it says that the proposals could not be read.
    """
    try:
        found = await proposals_of(SessionId(session_at(ask.place)))
    except StorageUnavailable as error:
        log.warning("proposals.not_read", turn=ask.turn_id, error=str(error))
        return NOT_READ
    mine = [each for each in found if each.turn_id == TurnId(ask.turn_id)]
    # A long text is cut at its end, so what may have taken effect comes first.
    return " ".join(map(_sentence, sorted(mine, key=_had_no_effect)))


def _had_no_effect(row: Proposal) -> bool:
    over = (ProposalState.REJECTED, ProposalState.EXPIRED, ProposalState.SUPERSEDED)
    return row.state in over and refused_by(row) != ONE_ORDER


def _sentence(row: Proposal) -> str:
    named = f"The proposed {row.action} of {row.product}"
    match row.state:
        case ProposalState.PENDING:
            return f"{named} still waits for a decision on its card."
        case ProposalState.CONFIRMED | ProposalState.DISPATCHING:
            return f"{named} was confirmed and is being carried out."
        case ProposalState.SUCCEEDED:
            done = REHEARSED if is_rehearsal(row) else "carried out"
            return f"{named} was confirmed and {done}."
        case ProposalState.FAILED | ProposalState.SUPERSEDED if guard := refused_by(row):
            same = "was not sent, because another proposal sent the same order."
            refused = "was confirmed, then refused; nothing was sent."
            return f"{named} {same if guard == ONE_ORDER else refused}"
        case ProposalState.FAILED:
            return f"{named} was confirmed and failed; its card has the details."
        case ProposalState.UNKNOWN:
            return f"{named} was sent, and its result is unknown."
        case ProposalState.REJECTED:
            return f"{named} was rejected; nothing was sent."
        case ProposalState.EXPIRED:
            return f"{named} expired; nothing was sent."
        case ProposalState.SUPERSEDED:
            return f"{named} was replaced by another proposal."
        case _:
            assert_never(row.state)
