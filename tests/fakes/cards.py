"""Which cards differ from their row, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.ids import ChannelId, MessageTs, ProposalId, TeamId
from bot.domain.proposal import Proposal
from bot.ports.proposals import CardClaim
from tests.fakes.stores import MemoryProposals

Shown = tuple[object, ...]


@dataclass
class MemoryCards:
    """`bot.ports.proposals.Cards` over the rows of a memory store."""

    proposals: MemoryProposals
    now: Callable[[], datetime]
    shown: dict[ProposalId, Shown] = field(default_factory=dict)
    until: dict[ProposalId, datetime] = field(default_factory=dict)
    tries: dict[ProposalId, int] = field(default_factory=dict)
    claimed: dict[int, Shown] = field(default_factory=dict)

    async def claim(self, proposal_id: ProposalId, for_s: float) -> CardClaim | None:
        row = self.proposals.rows.get(proposal_id)
        if row is None or not self._differs(row) or not self._is_free(proposal_id):
            return None
        self.tries[proposal_id] = self.tries.get(proposal_id, 0) + 1
        self.until[proposal_id] = self.now() + timedelta(seconds=for_s)
        number = len(self.claimed)
        self.claimed[number] = _look(row)
        return CardClaim(row, number, self.until[proposal_id], self.tries[proposal_id])

    async def showed(self, claim: CardClaim, ts: MessageTs) -> None:
        card = claim.proposal.id
        self.proposals.rows[card] = replace(self.proposals.rows[card], card_ts=ts)
        if self.until.get(card) != claim.until:
            self.shown.pop(card, None)
            return
        self.shown[card] = self.claimed[claim.wanted]
        del self.until[card]
        self.tries.pop(card)

    async def failed(self, claim: CardClaim, again_s: float) -> None:
        if self.until.get(claim.proposal.id) == claim.until:
            self.until[claim.proposal.id] = self.now() + timedelta(seconds=again_s)

    async def due(self, limit: int) -> Sequence[ProposalId]:
        rows = self.proposals.rows.values()
        return [r.id for r in rows if self._differs(r) and self._is_free(r.id)][:limit]

    async def in_reach(self, team: TeamId, channel: ChannelId, limit: int) -> Sequence[ProposalId]:
        rows = [r for r in self.proposals.rows.values() if self._differs(r)]
        there = [r for r in rows if (r.place.team, r.place.channel) == (team, channel)]
        for row in there:
            self.until.pop(row.id, None)
        newest = sorted(there, key=lambda row: row.created_at, reverse=True)
        return [row.id for row in newest][:limit]

    async def pressed(self, proposal_id: ProposalId, ts: MessageTs) -> None:
        row = self.proposals.rows[proposal_id]
        self.proposals.rows[proposal_id] = replace(row, card_ts=row.card_ts or ts)
        if self.tries.get(proposal_id, 0) > 1:
            self.until.pop(proposal_id, None)

    async def lapse(self) -> None:
        """So much time passes that no claim holds any more."""
        self.until.clear()

    def _differs(self, row: Proposal) -> bool:
        return self.shown.get(row.id) != _look(row)

    def _is_free(self, proposal_id: ProposalId) -> bool:
        until = self.until.get(proposal_id)
        return until is None or until <= self.now()


def _look(row: Proposal) -> Shown:
    return (row.state, row.votes, row.outcome)
