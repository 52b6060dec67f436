"""What is on record of another workspace beyond any of its conversations: told to its own admins alone."""

from dataclasses import dataclass, replace

from bot.domain.audit import AuditEvent
from bot.domain.ids import SessionId
from bot.domain.tenancy import HOME
from bot.ports.trail import AuditLog


def audit_of(audit: AuditLog, tenant: str) -> AuditLog:
    """Home's rows need no mark: they are all that are of no other workspace."""
    return audit if tenant == HOME else _OfWorkspace(audit, SessionId(f"session:{tenant}::"))


@dataclass(frozen=True, slots=True)
class _OfWorkspace:
    """`AuditLog`; `session` names the workspace, as the ids of its conversations do."""

    audit: AuditLog
    session: SessionId

    async def append(self, event: AuditEvent) -> None:
        """See `AuditLog.append`."""
        await self.audit.append(self._marked(event))

    async def append_with_step(self, event: AuditEvent) -> None:
        """See `AuditLog.append_with_step`."""
        await self.audit.append_with_step(self._marked(event))

    def _marked(self, event: AuditEvent) -> AuditEvent:
        return event if event.session_id else replace(event, session_id=self.session)
