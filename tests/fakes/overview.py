"""`bot.ports.overview.Overview` as lists that a test fills."""

from collections.abc import Sequence

from bot.domain.overview import RecentConversation, RunningQuestion
from bot.domain.proposal import Proposal
from bot.ports.failures import StorageUnavailable


class FakeOverview:
    """Overview. `broken` cannot be read."""

    def __init__(self) -> None:
        self.running: list[RunningQuestion] = []
        self.open: list[Proposal] = []
        self.talked: list[RecentConversation] = []
        self.broken = False

    async def under_way(self, limit: int) -> Sequence[RunningQuestion]:
        self._check()
        return self.running[:limit]

    async def open_proposals(self, limit: int) -> Sequence[Proposal]:
        self._check()
        return self.open[:limit]

    async def talks(self, limit: int) -> Sequence[RecentConversation]:
        self._check()
        return self.talked[:limit]

    def _check(self) -> None:
        if self.broken:
            raise StorageUnavailable("gone")
