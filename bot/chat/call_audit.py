"""An audit log without a row per model and tool call, for those who want decisions only."""

from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.trail import AuditLog

_CALLS = frozenset({AuditKind.MODEL_CALL, AuditKind.TOOL_CALL})


class DecisionsOnly(AuditLog):
    """`AuditLog` in front of another one. Whatever changes or refuses something still is a row."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit

    async def append(self, event: AuditEvent) -> None:
        """Write one row unless it is about a call. Raises StorageUnavailable."""
        if event.kind not in _CALLS:
            await self._audit.append(event)


def calls_audit(audit: AuditLog, *, every_call: bool) -> AuditLog:
    """What calls are written to."""
    return audit if every_call else DecisionsOnly(audit)
