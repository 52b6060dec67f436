"""What a model is told about the proposals of its session: what is open, what people decided."""

from collections.abc import Sequence
from typing import Final, assert_never

from bot.domain.ids import SessionId
from bot.domain.proposal import Proposal, ProposalState
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
    by = row.decided_by or "someone"
    outcome = row.outcome[:MAX_WORDS]
    match row.state:
        case ProposalState.PENDING:
            return f"open until {row.expires_at:%H:%M} UTC; do not propose it again."
        case ProposalState.CONFIRMED | ProposalState.DISPATCHING:
            return f"confirmed by {by}; running."
        case ProposalState.SUCCEEDED:
            return f"confirmed by {by}; succeeded: {outcome}"
        case ProposalState.FAILED:
            return f"confirmed by {by}; failed: {outcome}"
        case ProposalState.UNKNOWN:
            return f"confirmed by {by}; whether it took effect is unknown: {outcome}"
        case ProposalState.REJECTED:
            return f"rejected by {by}: {row.reason[:MAX_WORDS] or 'no reason given'}"
        case ProposalState.EXPIRED:
            return "expired; nobody decided."
        case ProposalState.SUPERSEDED:
            if not row.outcome:
                return f"edited by {by}: replaced by a newer proposal."
            return f"confirmed by {by}; not run, its target had changed: {outcome}"
        case _:
            assert_never(row.state)
