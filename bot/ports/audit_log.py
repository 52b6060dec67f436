"""The audit log: written, and read back."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.domain.audit import AuditEntry, AuditEvent


class AuditLog(Protocol):
    """The append-only audit log, for events that change no other row."""

    async def append(self, event: AuditEvent) -> None:
        """Write one row; a repeated `key` is one row. Raises StorageUnavailable."""
        ...

    async def append_with_step(self, event: AuditEvent) -> None:
        """Write one row in the transaction of the current step, if there is one.

        For events that are over and changed nothing, such as a read. A repeated `key` is one row.
        Raises StorageUnavailable.
        """
        ...


class AuditReader(Protocol):
    async def entries(
        self,
        *,
        after: int = 0,
        session: str = "",
        since: datetime | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[AuditEntry]:
        """In order, beyond row `after`; `newest` takes the last ones. Raises StorageUnavailable."""
        ...
