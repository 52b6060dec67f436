"""Records of conversations, read together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from bot.domain.dossier import Dossier
from bot.domain.ids import Place, SessionId


@dataclass(frozen=True, slots=True)
class RecentThreads:
    """Some of the `total` sessions that were looked for."""

    sessions: Sequence[SessionId]
    total: int


class Records(Protocol):
    """Reads only. Every method raises StorageUnavailable."""

    async def read(self, session_id: SessionId) -> Dossier | None:
        """The whole session, or None."""
        ...

    async def recent(self, place: Place, within: timedelta, limit: int) -> RecentThreads:
        """The other sessions of the place's channel in which something was asked lately.

        Those with proposals come first, then the newest.
        """
        ...
