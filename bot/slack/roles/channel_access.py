"""Which channels a person may see. Fails closed: a channel that cannot be checked is hidden.

Every member of the workspace except guests sees public channels. Other channels are visible to
their members. A direct message with the bot belongs to one person, known without a call.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from pydantic import Field, ValidationError

from bot.domain.ids import Person
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.single_flight import SingleFlightCache
from bot.slack.api.users import account_of

_log = structlog.stdlib.get_logger(__name__)

# conversations.members is Tier 4 (100 a minute) and called first, conversations.info Tier 3 (50)
# and called for channels without the person: once per channel and minute, for all people. Cached as
# long as roles.
ACCESS_TTL_S: Final = 60.0
MOST: Final = 20  # channels of one question; the rest counts as unread
_AT_ONCE: Final = 8
# Of a channel's members: 5,000 people. Later ones are not found.
_PAGE: Final = 999
_PAGES: Final = 5


@dataclass(frozen=True, slots=True)
class VisibleChannels:
    """The visible channels, and how many could not be checked."""

    seen: frozenset[str]
    unread: int = 0


class _Channel(ApiObject):
    is_channel: bool = False
    is_private: bool = True


class _ChannelAnswer(ApiObject):
    channel: _Channel


class _Cursor(ApiObject):
    next_cursor: str = ""


class _MembersAnswer(ApiObject):
    members: frozenset[str]
    response_metadata: _Cursor = Field(default_factory=_Cursor)


class ChannelAccess:
    """Checks over the Web API. `owners` maps a direct message to its person."""

    def __init__(self, api: SlackCalls, team: str, clock: Callable[[], float]) -> None:
        self._api = api
        self._team = team
        self._public = SingleFlightCache(self._is_public, clock)
        self._people = SingleFlightCache(self._members, clock)
        self._full = SingleFlightCache(self._is_full, clock)

    async def of(
        self, viewer: Person, channels: Iterable[str], owners: Mapping[str, str]
    ) -> VisibleChannels:
        """Which of the channels that person may see into. Never raises but for cancellation."""
        wanted = list(dict.fromkeys(channels))
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(channel: str) -> bool | None:
            if channel.startswith("D"):
                return owners.get(channel) == viewer.user
            async with slots:
                return await self._sees(viewer, channel)

        looked = await asyncio.gather(*map(one, wanted[:MOST]))
        seen = [channel for channel, sees in zip(wanted, looked, strict=False) if sees]
        unread = sum(sees is None for sees in looked) + max(0, len(wanted) - MOST)
        return VisibleChannels(frozenset(seen), unread)

    async def _sees(self, viewer: Person, channel: str) -> bool | None:
        try:
            if viewer.user in await self._people.get(channel, ACCESS_TTL_S):
                return True
            return await self._is_colleague(viewer) and await self._public.get(
                channel, ACCESS_TTL_S
            )
        except SurfaceGone:
            return False  # the bot itself sees it no more
        except (SurfaceFailed, TimeoutError, ValidationError) as error:
            _log.warning(
                "slack.channel_access.unreadable", channel=channel, error=type(error).__name__
            )
            return None

    async def _is_colleague(self, viewer: Person) -> bool:
        return viewer.team == self._team and await self._full.get(viewer.user, ACCESS_TTL_S)

    async def _is_public(self, channel: str) -> bool:
        answer = await self._api.call("conversations.info", channel=channel)
        found = _ChannelAnswer.model_validate(answer).channel
        return found.is_channel and not found.is_private

    async def _is_full(self, user: str) -> bool:
        found = await account_of(self._api, user)
        outside = found.is_stranger or found.is_elsewhere(self._team)
        return not (outside or found.deleted or found.is_guest)

    async def _members(self, channel: str) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        cursor = ""
        for _ in range(_PAGES):
            answer = _MembersAnswer.model_validate(
                await self._api.call(
                    "conversations.members", channel=channel, limit=_PAGE, cursor=cursor or None
                )
            )
            found |= answer.members
            cursor = answer.response_metadata.next_cursor
            if not cursor:
                break
        return found
