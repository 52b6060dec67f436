"""What is going on in a workspace, over all replicas. Whoever shows it leaves out what may not be seen."""

from collections.abc import Sequence
from typing import Protocol

from bot.domain.overview import Talk, UnderWay
from bot.domain.proposal import Proposal


class Overview(Protocol):
    """Reads only. Every method raises StorageUnavailable."""

    async def under_way(self, limit: int) -> Sequence[UnderWay]:
        """Oldest first: what runs, then what waits."""
        ...

    async def open_proposals(self, limit: int) -> Sequence[Proposal]:
        """Those that can still be decided, the one that expires first at the top."""
        ...

    async def talks(self, limit: int) -> Sequence[Talk]:
        """Conversations, the newest first."""
        ...
