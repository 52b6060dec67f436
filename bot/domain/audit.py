"""The decisions that are written down. One row each; the chain over them is the store's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from pydantic import JsonValue

from bot.domain.ids import SessionId, UserId


class AuditKind(StrEnum):
    TURN_STARTED = "turn.started"
    TURN_ENDED = "turn.ended"
    ANSWER_UNDELIVERED = "answer.undelivered"
    MODEL_CALL = "model.call"
    TOOL_CALL = "tool.call"
    TOOL_DEPTH_EXCEEDED = "LLMToolDepthExceeded"
    PROPOSAL_CREATED = "proposal.created"
    PROPOSAL_CONFIRMED = "proposal.confirmed"
    PROPOSAL_REJECTED = "proposal.rejected"
    PROPOSAL_EXPIRED = "proposal.expired"
    PROPOSAL_SUPERSEDED = "proposal.superseded"
    PROPOSAL_VOTED = "proposal.voted"
    CLICK_REFUSED = "click.refused"
    GUARD_VERDICT = "guard.verdict"
    DISPATCH_INTENT = "dispatch.intent"
    DISPATCH_OUTCOME = "dispatch.outcome"
    DISPATCH_EFFECT = "dispatch.effect"
    FEEDBACK_GIVEN = "feedback.given"
    ALERT_OPENED = "alert.opened"
    BUDGET_REFUSED = "budget.refused"
    BUDGET_ALERT = "budget.alert"
    SESSION_CLOSED = "session.closed"
    INGRESS_DENIED = "ingress.denied"
    ADMIN_COMMAND = "admin.command"
    FREEZE_CHANGED = "freeze.changed"
    WORKSPACE_INSTALLED = "workspace.installed"
    WORKSPACE_REMOVED = "workspace.removed"
    CONFIG_RELOADED = "config.reloaded"
    AUDIT_ERASED = "audit.erased"
    AUDIT_SEALED = "audit.sealed"
    CALLER_ADMITTED = "caller.admitted"
    CALLER_REVOKED = "caller.revoked"
    STARTED = "process.started"
    RESTORED = "database.restored"
    RECORDS_EXPORTED = "records.exported"
    RECORDS_DELETED = "records.deleted"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One decision. `body` holds redacted values only; `key` makes a repeated write one row."""

    kind: AuditKind
    actor: UserId | str
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    session_id: SessionId | str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One row as people read it. `erased_by` names the row that says its content was erased."""

    seq: int
    at: datetime
    kind: str
    actor: str
    session_id: str
    body: Mapping[str, JsonValue]
    mac: str
    key_id: str
    erased_by: int | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """As it is exported and sent to sinks."""
        return {
            "seq": self.seq,
            "at": self.at.isoformat(),
            "kind": self.kind,
            "actor": self.actor,
            "session": self.session_id,
            "body": dict(self.body),
            "mac": self.mac,
            "key_id": self.key_id,
            "erased_by": self.erased_by,
        }
