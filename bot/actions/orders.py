"""The order that a stored proposal is, and what a journal keeps of it and of its answer."""

import orjson
from pydantic import JsonValue, TypeAdapter

from adapters.control_plane.port import ControlAnswer, ControlOrder
from bot.actions.catalog import ActionCatalog
from bot.domain.proposal import Proposal
from tools.errors import InvalidArguments

_PROPOSAL = TypeAdapter(Proposal)
_ANSWER = TypeAdapter(ControlAnswer)


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
