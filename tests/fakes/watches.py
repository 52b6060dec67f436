"""The due watches, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.ids import ProposalId
from bot.domain.proposal import ProposalState
from bot.ports.proposals import Watch, WatchKind
from tests.fakes.stores import MemoryProposals


class MemoryWatches:
    """`bot.ports.proposals.Watches`; `rows` is (proposal, kind) to (due, until)."""

    def __init__(self, proposals: MemoryProposals, now: Callable[[], datetime]) -> None:
        self._proposals = proposals
        self._now = now
        self.rows: dict[tuple[ProposalId, WatchKind], tuple[datetime, datetime]] = {}

    async def begin(
        self, proposal_id: ProposalId, kind: WatchKind, first_s: float, for_s: float
    ) -> None:
        now = self._now()
        times = (now + timedelta(seconds=first_s), now + timedelta(seconds=for_s))
        self.rows.setdefault((proposal_id, kind), times)

    async def claim(self, limit: int, again_s: float) -> Sequence[Watch]:
        now = self._now()
        due = [(key, until) for key, (at, until) in self.rows.items() if at <= now][:limit]
        for key, until in due:
            self.rows[key] = (now + timedelta(seconds=again_s), until)
        return [Watch(*key, is_last=until <= now) for key, until in due]

    async def end(self, watch: Watch) -> None:
        self.rows.pop((watch.proposal_id, watch.kind), None)

    async def tell(self, proposal_id: ProposalId, progress: str) -> None:
        row = self._proposals.rows[proposal_id]
        if row.state is ProposalState.DISPATCHING:
            self._proposals.rows[proposal_id] = replace(row, outcome=progress)
