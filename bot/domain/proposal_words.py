"""A proposal's state in words: the one table that the card, the thread, the report, the model's notes
and those who pressed too late read from.
"""

from typing import assert_never

from bot.domain.proposal import Proposal, ProposalState


def word(state: ProposalState) -> str:
    """The state itself, in lower case."""
    match state:
        case ProposalState.PENDING:
            return "open"
        case ProposalState.DISPATCHING:
            return "running"
        case ProposalState.UNKNOWN:
            return "outcome unknown"
        case (
            ProposalState.CONFIRMED
            | ProposalState.SUCCEEDED
            | ProposalState.FAILED
            | ProposalState.REJECTED
            | ProposalState.EXPIRED
            | ProposalState.SUPERSEDED
        ):
            return state.value
        case _:
            assert_never(state)


def sign(state: ProposalState) -> str:
    """What stands before the words where there is room for a sign."""
    match state:
        case ProposalState.PENDING:
            return "…"
        case ProposalState.CONFIRMED | ProposalState.SUCCEEDED:
            return "✓"
        case ProposalState.DISPATCHING:
            return "⏳"
        case ProposalState.FAILED | ProposalState.REJECTED:
            return "✗"
        case ProposalState.UNKNOWN:
            return "⚠"
        case ProposalState.EXPIRED:
            return "⌛"
        case ProposalState.SUPERSEDED:
            return "↷"
        case _:
            assert_never(state)


def title(state: ProposalState) -> str:
    """The heading of a card: an open one is a proposal, any other says what became of it."""
    return "Proposal" if state is ProposalState.PENDING else word(state).capitalize()


def became(row: Proposal, who: str = "") -> str:
    """What became of it, as the middle of a sentence, with `word` of its state in it.

    `who` says who decided and when, with a leading space (" by Ana at 14:35 UTC"), of an expired
    one only when (" at 14:35 UTC"); without it the decision is left out.
    """
    said = word(row.state)
    match row.state:
        case ProposalState.PENDING:
            return f"{said}, nobody has decided yet"
        case ProposalState.CONFIRMED:
            return f"{said}{who}, about to run"
        case ProposalState.DISPATCHING | ProposalState.SUCCEEDED | ProposalState.FAILED:
            return f"{_confirmed(who)}{said}"
        case ProposalState.UNKNOWN:
            return f"{_confirmed(who)}{said}: whether it took effect could not be learned"
        case ProposalState.REJECTED:
            return f"{said}{who}, nothing was run"
        case ProposalState.EXPIRED:
            return f"{said}{who}, nobody decided in time and nothing was run"
        case ProposalState.SUPERSEDED if row.outcome:
            return f"{_confirmed(who)}{said} and not run: its target is not what the card showed"
        case ProposalState.SUPERSEDED:
            edited = f"edited{who} and " if who else ""
            return f"{edited}{said} by a newer proposal, nothing was run"
        case _:
            assert_never(row.state)


def too_late(row: Proposal, decider: str) -> str:
    """What somebody is told who pressed after it was decided. `decider` is a name."""
    expired = row.state is ProposalState.EXPIRED
    at = row.expires_at if expired else row.decided_at
    when = f" at {at:%H:%M} UTC" if at else ""
    told = became(row, when if expired else f" by {decider}{when}")
    return f"Already {told}. {_ADVICE.get(row.state, 'Your click changed nothing.')}"


_ADVICE = {
    ProposalState.EXPIRED: "Ask for a new proposal.",
    ProposalState.SUPERSEDED: "Use the newer card, or ask for one.",
}


def _confirmed(who: str) -> str:
    return f"confirmed{who}; " if who else ""
