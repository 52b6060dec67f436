"""What a model is told about the proposals of its session: what is open, what people decided."""

from collections.abc import Sequence
from typing import Final

from bot.domain.ids import SessionId
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.proposal_words import became, word
from bot.ports.proposals import ProposalStore

MAX_NOTES: Final = 10
MAX_WORDS: Final = 500  # characters of a reason or an outcome


async def proposal_notes(store: ProposalStore, session: SessionId) -> Sequence[str]:
    """One line each, oldest first, the latest `MAX_NOTES`."""
    rows = await store.of_session(session)
    return [_note(row) for row in rows[-MAX_NOTES:]]


def _note(row: Proposal) -> str:
    return f"Proposal {row.id} ({row.action} {row.product} {row.params}): {_became(row)}"


def _became(row: Proposal) -> str:
    if row.state is ProposalState.PENDING:
        return f"{word(row.state)} until {row.expires_at:%H:%M} UTC; do not propose it again."
    told = (row.outcome or row.reason)[:MAX_WORDS]
    who = "" if row.state is ProposalState.EXPIRED else f" by {row.decided_by or 'someone'}"
    return became(row, who) + (f": {told}" if told else ".")
