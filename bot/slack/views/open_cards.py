"""Links to the cards of open proposals that an answer names by their ids.

The link stands below the answer and is made here, of Slack's own word and the stored record: whoever
writes an id can point to an open proposal of the same channel, and to nothing else.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

import structlog

from bot.domain.ids import Place, ProposalId
from bot.domain.proposal import Proposal, ProposalState
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.delivery.outbox import Outbox
from bot.slack.text.mrkdwn import inline

# As `bot.domain.proposal.proposal_id` makes them.
_ID: Final = re.compile(r"(?<![0-9A-Za-z])p_[0-9a-f]{24}(?![0-9A-Za-z])")
_LINK: Final = re.compile(r"https://[^\s<>|]{1,500}")
_MOST: Final = 3  # as many as a conversation may have open
# The answer waits for it: rather the id alone than a late answer.
_PATIENCE_S: Final = 2.0
_NAME_CHARS: Final = 100

_log = structlog.stdlib.get_logger(__name__)

Stored = Callable[[ProposalId], Awaitable[Proposal | None]]


async def nothing_stored(_proposal: ProposalId) -> None:
    """Where no proposals are kept."""


class OpenCards:
    """`stored` reads one proposal, `now` the clock it lives by; both may raise StorageUnavailable."""

    def __init__(
        self,
        outbox: Outbox,
        stored: Stored,
        now: Callable[[], Awaitable[datetime]],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._outbox = outbox
        self._stored = stored
        self._now = now
        self._patience_s = patience_s

    async def lines(self, text: str, place: Place) -> Sequence[str]:
        """One line of mrkdwn for each open proposal of that channel whose id is in the text.

        Never raises; a card that cannot be found in time has no line.
        """
        named = list(dict.fromkeys(_ID.findall(text)))[:_MOST]
        told: list[str] = []
        try:
            async with asyncio.timeout(self._patience_s):
                for each in named:
                    told += await self._line(ProposalId(each), place)
        except (StorageUnavailable, SurfaceFailed, SurfaceGone, TimeoutError) as error:
            _log.info("slack.card.not_linked", error=str(error) or "no answer in time")
        return told

    async def _line(self, proposal_id: ProposalId, place: Place) -> Sequence[str]:
        proposal = await self._stored(proposal_id)
        if proposal is None or _channel(proposal.place) != _channel(place):
            return ()
        if proposal.state is not ProposalState.PENDING or not proposal.card_ts:
            return ()
        if proposal.expires_at <= await self._now():
            return ()
        link = await self._outbox.permalink(place.channel, proposal.card_ts)
        if not _LINK.fullmatch(link):
            return ()
        action, product = (
            inline(each, _NAME_CHARS) for each in (proposal.action, proposal.product)
        )
        return (f"Open proposal: {action} of {product}, <{link}|its card>",)


def _channel(place: Place) -> tuple[str, str]:
    return (place.team, place.channel)
