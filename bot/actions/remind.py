"""One reminder of an undecided proposal, shortly before it expires."""

from datetime import timedelta
from typing import Final

from bot.domain.change import named
from bot.domain.proposal import Proposal, ProposalState
from bot.ports.proposals import Watches, WatchKind

BEFORE: Final = timedelta(minutes=2)


async def begin_reminder(watches: Watches, row: Proposal) -> None:
    """Look again before it expires. A second begin changes nothing. Raises StorageUnavailable."""
    if row.state is ProposalState.PENDING:
        lives_s = (row.expires_at - row.created_at).total_seconds()
        await watches.begin(row.id, WatchKind.REMINDER, lives_s - BEFORE.total_seconds(), lives_s)


def reminder(row: Proposal) -> str:
    waits = ""
    if row.approvals > 1:
        waits = f" {len(row.votes)} of {row.approvals} people have confirmed it."
    return (
        f"⌛ {named(row)}? The card above expires at {row.expires_at:%H:%M} UTC and is not "
        f"decided yet.{waits}"
    )
