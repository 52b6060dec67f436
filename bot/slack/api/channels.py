"""Channels by id: their names, which channel rules match, and the companies that can read them.

A channel's name is kept in the database, so that a restart or a slow minute of Slack does not lose
it. A rename event removes it at once. A name that could not be read is UNKNOWN.

`conversations.info` is Tier 3 (50 a minute,
https://docs.slack.dev/reference/methods/conversations.info), so all readers share one cached
answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Final, Protocol, TypeGuard

import structlog
from pydantic import JsonValue, ValidationError

from bot.domain.channel import DIRECT, GROUP, UNKNOWN, KeptName, Readers
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.single_flight import SingleFlightCache
from tools.policy import NAMELESS

_log = structlog.stdlib.get_logger(__name__)
# What anybody reads of it; the rest, such as topics, is not kept.
_KEPT: Final = frozenset(
    {
        "id", "name", "is_im", "is_mpim", "is_ext_shared", "is_shared", "is_org_shared",
        "is_pending_ext_shared", "pending_shared",
    }
)  # fmt: skip

Told = Mapping[str, JsonValue]


class Channels:
    """Cached `conversations.info` of one workspace. Each reader validates what it uses."""

    def __init__(self, api: SlackCalls, clock: Callable[[], float]) -> None:
        self._api = api
        self._asked = SingleFlightCache(self._ask, clock)

    async def told(self, channel: str, max_age_s: float) -> Told:
        """Slack's `channel` object, at most `max_age_s` old.

        Raises SurfaceGone, SurfaceFailed, TimeoutError.
        """
        return await self._asked.get(channel, max_age_s)

    def forget(self, channel: str) -> None:
        """Drop the cached answer, because the channel changed."""
        self._asked.forget(channel)

    async def _ask(self, channel: str) -> Told:
        found = (await self._api.call("conversations.info", channel=channel)).get("channel")
        if not isinstance(found, dict):
            raise SurfaceFailed("conversations.info: answered without a channel", retryable=False)
        return {name: value for name, value in found.items() if name in _KEPT}


# conversations.info is Tier 3 (50 a minute): one call per channel and TTL, and per press a minute.
TTL_S: Final = 300.0
DECIDING_S: Final = 60.0  # as groups and rotas
# While Slack does not answer. Longer than a bad day of Slack's, shorter than the acceptable time
# for an old name after a lost rename event.
KEPT_S: Final = 86_400.0
RETRY_S: Final = 0.5
_GROUP_NAME: Final = "mpdm-"  # what Slack calls a direct message among several

Sleep = Callable[[float], Awaitable[None]]


class NameStore(Protocol):
    """Channel names in the database. Every method raises StorageUnavailable."""

    async def get(self, place: Place) -> KeptName | None:
        """The stored name, or None."""
        ...

    async def keep(self, place: Place, name: str, instead_of: KeptName | None) -> bool:
        """Store a name. False: the row changed since `instead_of` was read."""
        ...

    async def forget(self, place: Place) -> None:
        """Remove a renamed channel's name. A read in progress does not store the old one."""
        ...


class _Channel(ApiObject):
    id: str = ""
    name: str = ""
    is_im: bool = False
    is_mpim: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    may_come: bool = False


def _is_within(kept: KeptName | None, seconds: float) -> TypeGuard[KeptName]:
    return kept is not None and kept.name != UNKNOWN and 0 <= kept.age_s <= seconds


@dataclass(slots=True, eq=False, repr=False)
class SlackChannelNames:
    """`bot.ports.platform.ChannelNames` over the Web API."""

    channels: Channels
    store: NameStore
    _: KW_ONLY
    sleep: Sleep = asyncio.sleep

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:
        found = await self._read(place, TTL_S, KEPT_S)
        if found.may_come and patience_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    while found.may_come:
                        await self.sleep(RETRY_S)
                        found = await self._read(place, TTL_S, KEPT_S)
        return found.name

    async def for_deciding(self, place: Place) -> str:
        return (await self._read(place, DECIDING_S, DECIDING_S)).name

    async def renamed(self, team: TeamId, channel: str) -> None:
        """Handle a rename event. The new name is read from Slack, because events may arrive late."""
        await self.store.forget(Place(team, ChannelId(channel), MessageTs("")))
        self.channels.forget(channel)

    async def _read(self, place: Place, fresh_s: float, kept_s: float) -> _Found:
        if place.channel.startswith("D"):
            return _Found(DIRECT)
        kept = await self.store.get(place)
        if _is_within(kept, fresh_s):
            return _Found(kept.name)
        found = await self._look_up(place.channel)
        if found.name == UNKNOWN:
            return _Found(kept.name) if _is_within(kept, kept_s) else found
        if await self.store.keep(place, found.name, kept):
            return found
        # Renamed while Slack was asked, or another replica was quicker.
        kept = await self.store.get(place)
        return _Found(kept.name) if _is_within(kept, fresh_s) else _Found(UNKNOWN, may_come=True)

    async def _look_up(self, channel: str) -> _Found:
        try:
            return _Found(await self._ask(channel))
        except SurfaceFailed as error:
            why: Exception = error
            may_come = error.retryable
        except (SurfaceGone, ValidationError) as error:
            why, may_come = error, False
        except TimeoutError as error:
            why, may_come = error, True
        _log.warning("slack.channel_name.unknown", channel=channel, error=type(why).__name__)
        return _Found(UNKNOWN, may_come)

    async def _ask(self, channel: str) -> str:
        found = _Channel.model_validate(await self.channels.told(channel, 0.0))
        if found.id not in {"", channel} or found.name.startswith(NAMELESS):
            return UNKNOWN
        if found.is_im:
            return DIRECT
        if found.is_mpim or found.name.startswith(_GROUP_NAME):
            return GROUP
        return found.name


class _SharedChannel(ApiObject):
    """Sharing flags of `conversations.info`.

    Slack sets `is_ext_shared` to false for unshared channels.
    """

    is_ext_shared: bool | None = None
    is_shared: bool = False
    is_org_shared: bool = False
    is_pending_ext_shared: bool = False
    pending_shared: tuple[str, ...] = ()


class ChannelReaders:
    """`bot.ports.platform.ReadersOf` over the Web API."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def of(self, place: Place) -> Readers:
        """The companies that can read the place. A direct message has one reader, checked before."""
        if place.channel.startswith("D"):
            return Readers.OWN
        try:
            return await self._ask(place.channel)
        except (SurfaceFailed, SurfaceGone, ValidationError, TimeoutError) as error:
            _log.warning("slack.readers.unknown", error=type(error).__name__)
            return Readers.UNKNOWN

    async def _ask(self, channel: str) -> Readers:
        found = _SharedChannel.model_validate(await self._channels.told(channel, TTL_S))
        if found.is_ext_shared or (found.is_shared and not found.is_org_shared):
            return Readers.SHARED
        if found.is_pending_ext_shared or found.pending_shared:
            return Readers.PENDING
        return Readers.UNKNOWN if found.is_ext_shared is None else Readers.OWN
