"""A proposal and a control plane's answer as values that a journal can keep and replay."""

from pydantic import JsonValue, TypeAdapter

from adapters.control_plane.port import ControlAnswer
from bot.domain.proposal import Proposal

_PROPOSAL = TypeAdapter(Proposal)
_ANSWER = TypeAdapter(ControlAnswer)


def from_proposal(proposal: Proposal) -> JsonValue:
    """A proposal as JSON for the journal."""
    value: JsonValue = _PROPOSAL.dump_python(proposal, mode="json")
    return value


def to_proposal(value: JsonValue) -> Proposal:
    """As it was."""
    return _PROPOSAL.validate_python(value)


def from_answer(answer: ControlAnswer) -> JsonValue:
    """A control plane's answer as JSON for the journal."""
    value: JsonValue = _ANSWER.dump_python(answer, mode="json")
    return value


def to_answer(value: JsonValue) -> ControlAnswer:
    """As it was."""
    return _ANSWER.validate_python(value)
