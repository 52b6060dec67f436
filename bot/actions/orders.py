"""Build the order of a stored proposal, and the record of its end."""

from dataclasses import dataclass, replace
from typing import Final, assert_never

import orjson
from pydantic import JsonValue, TypeAdapter

from adapters.control_plane.port import AnswerKind, ControlAnswer, ControlOrder
from bot.actions.catalog import ActionCatalog
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.change import named, outcome_words
from bot.domain.proposal import (
    AGAIN,
    ONE_ORDER,
    Proposal,
    ProposalState,
    became,
    refused_by,
    sign,
)
from tools.errors import InvalidArguments
from tools.redactor import RedactionFailed, Redactor

MAX_CHARS: Final = 4_000  # of an answer's JSON text, as kept and shown
CHECK: Final = (
    "It was sent at most once and is not sent again. Before you ask again, check the target, and "
    "the control plane for this proposal's id."
)

_NEXT: Final = {
    ProposalState.UNKNOWN: f" {CHECK}",
    ProposalState.EXPIRED: " Ask again for a new card.",
    ProposalState.SUPERSEDED: " Ask for a new proposal.",
}
_NOTHING_DONE: Final = "not sent, nothing was changed: "

_PROPOSAL = TypeAdapter(Proposal)
_ANSWER = TypeAdapter(ControlAnswer)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An end state and the JSON text that goes with it, redacted and capped."""

    state: ProposalState
    text: str


def ended(row: Proposal, outcome: Outcome, by: str) -> AuditEvent:
    """The audit row of a dispatch's end; a second one is the same row."""
    return AuditEvent(
        AuditKind.DISPATCH_OUTCOME,
        by,
        {"proposal": row.id, "state": outcome.state.value, "outcome": outcome.text},
        session_id=row.session_id,
        key=f"{row.id}:outcome",
    )


def safe(answer: ControlAnswer, redactor: Redactor) -> ControlAnswer:
    """The answer as it may be kept and shown: redacted, and cut when it is long."""
    try:
        return replace(
            answer, words=redactor.redact(answer.words), body=_safe_body(answer.body, redactor)
        )
    except RedactionFailed:
        return replace(
            answer, words="the answer is hidden, because it could not be redacted", body=None
        )


def outcome_of(answer: ControlAnswer, look: str = "") -> Outcome:
    """What a safe answer means. `look` is where a person sees what became of it."""
    match answer.kind:
        case AnswerKind.SUCCEEDED:
            if answer.body is None:
                return _outcome(ProposalState.SUCCEEDED, {"answer": answer.words})
            return _outcome(ProposalState.SUCCEEDED, answer.body)
        case AnswerKind.FAILED:
            return _outcome(ProposalState.FAILED, _trouble(answer))
        case AnswerKind.NOT_SENT:
            return _outcome(ProposalState.FAILED, {"error": _NOTHING_DONE + answer.words})
        case AnswerKind.LOST | AnswerKind.RUNNING:
            check = {"check": look} if look else {}
            return _outcome(ProposalState.UNKNOWN, {**_trouble(answer), **check})
        case _:
            assert_never(answer.kind)


def progress_of(answer: ControlAnswer) -> str:
    """How far a running order is, as the card shows it."""
    said = {"progress": answer.words} | ({"answer": answer.body} if answer.body else {})
    return orjson.dumps(said).decode()


def refusal(guard: str, reason: str, *, outdated: bool = False) -> Outcome:
    """A guard refused: nothing was sent. `outdated` when the card no longer matches."""
    state = ProposalState.SUPERSEDED if outdated else ProposalState.FAILED
    return _outcome(state, {"error": _NOTHING_DONE + reason, "guard": guard})


def sent_before(same: Proposal) -> str:
    """Why one is not sent: the identical order that went out under another proposal."""
    at = f", confirmed at {same.decided_at:%H:%M} UTC" if same.decided_at else ""
    return f"the same order was sent after this was proposed ({same.id}{at}){_CAME_OF[same.state]}"


_CAME_OF: Final = {
    ProposalState.DISPATCHING: "; it had not ended yet",
    ProposalState.SUCCEEDED: " and succeeded",
    ProposalState.FAILED: " and failed",
    ProposalState.UNKNOWN: "; it may have taken effect, so check the target first",
}


def retired(row: Proposal, same: Proposal, outcome: Outcome) -> AuditEvent:
    """The row of the audit log of an open one that is over because the same order goes out."""
    body: dict[str, JsonValue] = {
        "proposal": row.id,
        "action": row.action,
        "product": row.product,
        "digest": row.digest,
        "same": same.id,
        "outcome": outcome.text,
    }
    key = f"{row.id}:{outcome.state.value}"
    return AuditEvent(AuditKind.PROPOSAL_SUPERSEDED, "kortex", body, row.session_id, key)


def line(proposal: Proposal) -> str:
    """The thread's line about a proposal that runs or reached an end."""
    state = proposal.state
    told = f"{sign(state)} {named(proposal)}: {became(proposal)}."
    if state is ProposalState.DISPATCHING:
        return f"{told} The card shows its progress, and this thread its result."
    said = outcome_words(proposal.outcome).replace("`", "´")
    then = f" {AGAIN}" if refused_by(proposal) == ONE_ORDER else _NEXT.get(state, "")
    return f"{told}{then}" + (f"\n```\n{said}\n```" if said else "")


def _outcome(state: ProposalState, said: JsonValue) -> Outcome:
    return Outcome(state, orjson.dumps(said).decode())


def _trouble(answer: ControlAnswer) -> dict[str, JsonValue]:
    if answer.body is None:
        return {"error": answer.words}
    return {"error": answer.words, "answer": answer.body}


def _safe_body(body: JsonValue, redactor: Redactor) -> JsonValue:
    if body is None:
        return None
    safe = redactor.redact_value(body)
    text = orjson.dumps(safe).decode()
    return {"cut": True, "begins": text[: MAX_CHARS // 2]} if len(text) > MAX_CHARS else safe


def order_of(catalog: ActionCatalog, row: Proposal) -> ControlOrder | None:
    """None when the action is no longer declared. The key is the proposal's id, always."""
    try:
        rule = catalog.find(row.action, row.product).rule
    except InvalidArguments:
        return None
    return ControlOrder(
        endpoint=rule.endpoint,
        idempotency_key=row.id,
        action=row.action,
        product=row.product,
        params=orjson.loads(row.params),
        confirmed_by=row.decided_by or "",
    )


def from_proposal(proposal: Proposal) -> JsonValue:
    value: JsonValue = _PROPOSAL.dump_python(proposal, mode="json")
    return value


def to_proposal(value: JsonValue) -> Proposal:
    return _PROPOSAL.validate_python(value)


def from_answer(answer: ControlAnswer) -> JsonValue:
    """A control plane's answer as JSON for the journal."""
    value: JsonValue = _ANSWER.dump_python(answer, mode="json")
    return value


def to_answer(value: JsonValue) -> ControlAnswer:
    return _ANSWER.validate_python(value)
