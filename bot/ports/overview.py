"""The activity in a workspace, over all replicas. Callers hide what the viewer may not see."""

from collections.abc import Sequence
from typing import Protocol

from bot.domain.overview import RecentConversation, RunningQuestion
from bot.domain.proposal import Proposal


class Overview(Protocol):
    """Reads only. Every method raises StorageUnavailable."""

    async def under_way(self, limit: int) -> Sequence[RunningQuestion]:
        """Oldest first: what runs, then what waits."""
        ...

    async def open_proposals(self, limit: int) -> Sequence[Proposal]:
        """Proposals that can be decided, the next to expire first."""
        ...

    async def talks(self, limit: int) -> Sequence[RecentConversation]:
        """Conversations, the newest first."""
        ...
