"""The decisions that are written down. One row each; the chain over them is the store's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from bot.domain.ids import SessionId, UserId


class AuditKind(StrEnum):
    """What happened."""

    TURN_STARTED = "turn.started"
    TURN_ENDED = "turn.ended"
    MODEL_CALL = "model.call"
    TOOL_CALL = "tool.call"
    PROPOSAL_CREATED = "proposal.created"
    PROPOSAL_CONFIRMED = "proposal.confirmed"
    PROPOSAL_REJECTED = "proposal.rejected"
    PROPOSAL_EXPIRED = "proposal.expired"
    PROPOSAL_SUPERSEDED = "proposal.superseded"
    CLICK_REFUSED = "click.refused"
    GUARD_VERDICT = "guard.verdict"
    DISPATCH_INTENT = "dispatch.intent"
    DISPATCH_OUTCOME = "dispatch.outcome"
    BUDGET_REFUSED = "budget.refused"
    INGRESS_DENIED = "ingress.denied"
    ADMIN_COMMAND = "admin.command"
    STARTED = "process.started"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One decision. `body` holds redacted values only; `key` makes a repeated write one row."""

    kind: AuditKind
    actor: UserId | str
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    session_id: SessionId | str = ""
    key: str = ""
