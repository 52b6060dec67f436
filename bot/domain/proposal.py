"""A proposal and its state machine. Pure: the database decides races, this decides what is legal.

pending → confirmed → dispatching → succeeded | failed | unknown; pending → rejected | expired |
superseded; confirmed → superseded, when the target is no longer as the card showed; pending |
confirmed → superseded, when the same order was sent after it was raised; any open one → unknown,
only in a database restored from a copy.

The wording of states is here too: the card, the thread, the report, the model's notes and late
presses use one table.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

import orjson
from pydantic import JsonValue

from bot.domain.ids import MessageTs, Person, Place, ProposalId, SessionId, TurnId, UserId
from bot.domain.roles import also_words

LIFETIME = timedelta(minutes=10)  # RFC 005 section 6.2.8
# As an outcome names what refused: the same order went out under another proposal.
ONE_ORDER = "one_order"
REHEARSED = "rehearsed, nothing sent"
AGAIN = "Ask again if it should be done once more."
BLAST_RADII = ("one host", "one service", "whole cluster")  # narrowest first


class ProposalState(StrEnum):
    """The states; the last six are final."""

    PENDING = "pending"
    CONFIRMED = "confirmed"
    DISPATCHING = "dispatching"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


LEGAL: Mapping[ProposalState, frozenset[ProposalState]] = {
    ProposalState.PENDING: frozenset(
        {
            ProposalState.CONFIRMED,
            ProposalState.REJECTED,
            ProposalState.EXPIRED,
            ProposalState.SUPERSEDED,
        }
    ),
    ProposalState.CONFIRMED: frozenset(
        {ProposalState.DISPATCHING, ProposalState.FAILED, ProposalState.SUPERSEDED}
    ),
    ProposalState.DISPATCHING: frozenset(
        {ProposalState.SUCCEEDED, ProposalState.FAILED, ProposalState.UNKNOWN}
    ),
    ProposalState.SUCCEEDED: frozenset(),
    ProposalState.FAILED: frozenset(),
    ProposalState.UNKNOWN: frozenset(),
    ProposalState.REJECTED: frozenset(),
    ProposalState.EXPIRED: frozenset(),
    ProposalState.SUPERSEDED: frozenset(),
}
OPEN = frozenset(state for state in ProposalState if LEGAL[state])


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's confirmation where several are wanted. `key` is that of the click."""

    by: UserId
    at: datetime
    key: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """The stored record: the only source of a dispatch.

    `params` is canonical JSON text; `digest` covers action, product and params; the card shows it
    and the dispatch checks it again. `decided_by` and the later fields are None until then. `votes`
    are kept if more than one of the `approvals` is wanted. `confirm_roles` are the channel's,
    `action_roles` the action's own: a decision needs one of each. `supersedes` is the proposal it
    replaced. `channel_name` is the name with the rule that made the card, empty when it was not
    known.
    """

    id: ProposalId
    session_id: SessionId
    turn_id: TurnId
    place: Place
    asked_by: Person
    action: str
    product: str
    params: str
    digest: str
    rationale: str
    model_blast_radius: str
    blast_radius: str
    reversible: bool
    untrusted_read: bool
    confirm_roles: tuple[str, ...]
    four_eyes: bool
    state: ProposalState
    created_at: datetime
    expires_at: datetime
    card_ts: MessageTs | None = None
    decided_by: UserId | None = None
    decided_at: datetime | None = None
    reason: str = ""
    outcome: str = ""  # JSON text of what the control plane answered, redacted
    approvals: int = 1
    votes: tuple[Vote, ...] = ()
    action_roles: tuple[str, ...] = ()
    supersedes: str = ""
    preview: str = ""  # canonical JSON text of the dry run, redacted; empty: none was asked for
    objects: int | None = None  # how many things it would touch; None: not counted
    object_names: tuple[str, ...] = ()  # of these objects, as far as reported
    fingerprint: str = ""  # canonical JSON text of the target's facts; empty: not read
    confirm_dialog: bool = False
    channel_name: str = ""


class IllegalTransition(Exception):
    """A state change the machine does not have."""


def canonical(params: Mapping[str, JsonValue]) -> str:
    """One JSON text for equal parameters: sorted keys, no spaces, UTF-8."""
    return orjson.dumps(dict(params), option=orjson.OPT_SORT_KEYS).decode()


def digest(action: str, product: str, params: str) -> str:
    """SHA-256 over what will run; `params` is canonical text."""
    return hashlib.sha256("\n".join((action, product, params)).encode()).hexdigest()


def proposal_id(turn: TurnId, tool_call_id: str, content: str) -> ProposalId:
    """The same id for every attempt at one tool call; `content` is the digest.

    The content is part of it because some models number their calls from 0 in every round.
    """
    text = "\n".join((turn, tool_call_id, content))
    return ProposalId("p_" + hashlib.sha256(text.encode()).hexdigest()[:24])


def blast_rank(words: str) -> int | None:
    """How wide the widest radius named in the words is (0 is one host); None when none is."""
    plain = " ".join(words.lower().split())
    return max((rank for rank, name in enumerate(BLAST_RADII) if name in plain), default=None)


def check_transition(before: ProposalState, after: ProposalState) -> None:
    """Raises IllegalTransition unless the machine has that edge."""
    if after not in LEGAL[before]:
        raise IllegalTransition(f"{before} → {after}")


def deciders(row: Proposal) -> str:
    """Who may decide, in words; empty: no person may."""
    channel = ", ".join(row.confirm_roles)
    if not channel or not row.action_roles:
        return channel
    return f"{channel} (only if also {also_words(row.action_roles)})"


def unapproved(row: Proposal) -> str | None:
    """Why the confirmations on record are not enough to run it; None when they are."""
    if not row.decided_by:
        return "no confirmation is on record"
    voters = {vote.by for vote in row.votes} | {row.decided_by}
    if row.four_eyes and row.asked_by.user in voters:
        return "someone other than the asker must confirm it"
    if len(voters) < row.approvals:
        return f"{len(voters)} of {row.approvals} people have confirmed it"
    return None


def refused_by(row: Proposal) -> str:
    """The guard that refused it, so that nothing was sent; empty: none did."""
    if row.state not in (ProposalState.FAILED, ProposalState.SUPERSEDED) or not row.outcome:
        return ""
    try:
        said = orjson.loads(row.outcome)
    except orjson.JSONDecodeError:
        return ""
    guard = said.get("guard") if isinstance(said, dict) else None
    return guard if isinstance(guard, str) else ""


def is_rehearsal(row: Proposal) -> bool:
    """Whether its card showed that nothing is sent, however people decide."""
    try:
        preview = orjson.loads(row.preview or "null")
    except orjson.JSONDecodeError:
        return False
    return isinstance(preview, dict) and preview.keys() == _REHEARSAL


# The preview that the rehearsing executor gives; a control plane's has keys of its own.
_REHEARSAL = frozenset({"rehearsal", "would_send"})
_CONFIRMED = object()


@dataclass(frozen=True, slots=True)
class ConfirmedProposal:
    """Proof that a person's Confirm won the transition. Only `confirmed_from_row` makes one."""

    proposal: Proposal
    proof: object

    def __post_init__(self) -> None:
        if self.proof is not _CONFIRMED:
            raise IllegalTransition("a ConfirmedProposal comes from the state transition only")


def confirmed_from_row(proposal: Proposal) -> ConfirmedProposal:
    """Wrap a row that a person confirmed, by the database.

    Raises IllegalTransition for any other state, for a row that too few people confirmed or without
    a decider, and for one with parameters that no longer match its digest.
    """
    if proposal.state not in (ProposalState.CONFIRMED, ProposalState.DISPATCHING):
        raise IllegalTransition(f"{proposal.id} is {proposal.state}")
    if not proposal.decided_by:
        raise IllegalTransition(f"{proposal.id} has no confirmation")
    if len({vote.by for vote in proposal.votes} | {proposal.decided_by}) < proposal.approvals:
        raise IllegalTransition(f"{proposal.id} was confirmed by too few people")
    if digest(proposal.action, proposal.product, proposal.params) != proposal.digest:
        raise IllegalTransition(f"{proposal.id} no longer matches its digest")
    return ConfirmedProposal(proposal, _CONFIRMED)


def word(state: ProposalState) -> str:
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


def status(row: Proposal) -> str:
    """`word` of its state; of a rehearsal that went through, that nothing was sent."""
    rehearsed = row.state is ProposalState.SUCCEEDED and is_rehearsal(row)
    return REHEARSED if rehearsed else word(row.state)


def title(state: ProposalState, *, rehearsal: bool = False) -> str:
    """The heading of a card: an open one is a proposal, any other says what became of it."""
    if state is ProposalState.PENDING:
        return "Rehearsal" if rehearsal else "Proposal"
    if state is ProposalState.SUCCEEDED and rehearsal:
        return REHEARSED.capitalize()
    return word(state).capitalize()


def became(row: Proposal, who: str = "") -> str:
    """What became of it, as the middle of a sentence, with its `status` in it.

    `who` says who decided and when, with a leading space (" by Ana at 14:35 UTC"), of an expired
    one only when (" at 14:35 UTC"); without it the decision is left out.
    """
    said = status(row)
    match row.state:
        case ProposalState.PENDING:
            return f"{said}, not decided yet"
        case ProposalState.CONFIRMED:
            return f"{said}{who}, about to run"
        case ProposalState.DISPATCHING | ProposalState.SUCCEEDED | ProposalState.FAILED:
            return f"{_confirmed(who)}{said}"
        case ProposalState.UNKNOWN:
            return f"{_confirmed(who)}{said}: it may have taken effect"
        case ProposalState.REJECTED:
            return f"{said}{who}, nothing was run"
        case ProposalState.EXPIRED:
            return f"{said}{who}; no one decided in time, nothing was run"
        case ProposalState.SUPERSEDED if refused_by(row) == ONE_ORDER:
            return f"{_confirmed(who)}{said} and not run: the same was sent by another proposal"
        case ProposalState.SUPERSEDED if row.outcome:
            return f"{_confirmed(who)}{said} and not run: its target differs from the card"
        case ProposalState.SUPERSEDED:
            edited = f"edited{who} and " if who else ""
            return f"{edited}{said} by a newer proposal, nothing was run"
        case _:
            assert_never(row.state)


def too_late(row: Proposal, decider: str) -> str:
    """The message for a press after the decision. `decider` is a name."""
    expired = row.state is ProposalState.EXPIRED
    at = row.expires_at if expired else row.decided_at
    when = f" at {at:%H:%M} UTC" if at else ""
    is_repeat = refused_by(row) == ONE_ORDER
    by = "" if is_repeat and not row.decided_by else f" by {decider}{when}"
    told = became(row, when if expired else by)
    advice = AGAIN if is_repeat else _ADVICE.get(row.state, "Your click changed nothing.")
    return f"Already {told}. {advice}"


_ADVICE = {
    ProposalState.EXPIRED: "Ask for a new proposal.",
    ProposalState.SUPERSEDED: "Use the newer card, or ask for one.",
}


def _confirmed(who: str) -> str:
    return f"confirmed{who}; " if who else ""
