"""The audit trail: written, and read back."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.domain.audit import AuditEvent, TrailEntry


class AuditLog(Protocol):
    """The append-only trail, for events that change no other row."""

    async def append(self, event: AuditEvent) -> None:
        """Write one row; a repeated `key` is one row. Raises StorageUnavailable."""
        ...

    async def append_with_step(self, event: AuditEvent) -> None:
        """Likewise, but in one transaction with the record of the step under way, if there is one.

        For what tells of something that is over and changed nothing, such as a call that read.
        """
        ...


class Trail(Protocol):
    """The trail, read back."""

    async def entries(
        self,
        *,
        after: int = 0,
        session: str = "",
        since: datetime | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[TrailEntry]:
        """In order, beyond row `after`; `newest` takes the last ones. Raises StorageUnavailable."""
        ...
