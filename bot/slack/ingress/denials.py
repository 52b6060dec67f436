"""Audit rows for requests that were dropped."""

from collections.abc import Mapping

import structlog

from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.audit_log import AuditLog
from bot.ports.failures import StorageUnavailable

_log = structlog.stdlib.get_logger(__name__)


class Denials:
    """Writes `ingress.denied`. An audit log that is away does not stop the drop."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit

    async def write(self, user: str, why: str, about: Mapping[str, str], delivery: str) -> None:
        """Write one row per `delivery`, Slack's id of the request."""
        event = AuditEvent(
            AuditKind.INGRESS_DENIED,
            user,
            {"why": why, **about},
            key=f"ingress.denied:{delivery}" if delivery else "",
        )
        try:
            await self._audit.append(event)
        except StorageUnavailable:
            # Dropping it is the effect; a second delivery would change nothing.
            _log.error("slack.denied.unaudited", why=why)
