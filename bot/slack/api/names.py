"""Names by id, asked of Slack: of channels, which rules are written in, and of people, best effort.

A channel's name is kept in the database, so that neither a restart nor a bad minute of Slack's forgets
it; a rename, told by an event, ends that at once. What could not be read is no name.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol, TypeGuard

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from bot.domain.channel import DIRECT, GROUP, UNKNOWN, KeptName
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.channels import Channels
from bot.slack.api.single_flight import SingleFlightCache
from tools.policy import NAMELESS
from tools.time_zones import is_zone

_log = structlog.stdlib.get_logger(__name__)

# conversations.info is Tier 3 (50 a minute): one call per channel and TTL, and per press a minute.
TTL_S: Final = 300.0
DECIDING_S: Final = 60.0  # as groups and rotas
# While Slack does not answer. Longer than a bad day of Slack's, shorter than a renamed channel whose
# event was lost may go by its old name.
KEPT_S: Final = 86_400.0
RETRY_S: Final = 0.5
_GROUP_NAME: Final = "mpdm-"  # what Slack calls a direct message among several

Sleep = Callable[[float], Awaitable[None]]

_TTL_S = 300.0
_ZONE_TTL_S = 3600.0


class NameStore(Protocol):
    """Names of channels, over restarts and replicas. Every method raises StorageUnavailable."""

    async def get(self, place: Place) -> KeptName | None:
        """The row now; None when there is none."""
        ...

    async def keep(self, place: Place, name: str, instead_of: KeptName | None) -> bool:
        """It was read now. False: the row is not the one it was asked for any more."""
        ...

    async def forget(self, place: Place) -> None:
        """It was renamed: what is kept is its name no more, nor what is being read just now."""
        ...


class _Channel(BaseModel):
    """What we read of `conversations.info`."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )

    id: str = ""
    name: str = ""
    is_im: bool = False
    is_mpim: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """A name, or none, and whether one may come when it is asked for again at once."""

    name: str
    may_come: bool = False


def _is_within(kept: KeptName | None, seconds: float) -> TypeGuard[KeptName]:
    return kept is not None and kept.name != UNKNOWN and 0 <= kept.age_s <= seconds


class SlackChannelNames:
    """`bot.ports.platform.ChannelNames` over the Web API."""

    def __init__(
        self,
        channels: Channels,
        store: NameStore,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._channels = channels
        self._store = store
        self._sleep = sleep

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:
        """See `bot.ports.platform.ChannelNames.for_asking`."""
        found = await self._read(place, TTL_S, KEPT_S)
        if found.may_come and patience_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    while found.may_come:
                        await self._sleep(RETRY_S)
                        found = await self._read(place, TTL_S, KEPT_S)
        return found.name

    async def for_deciding(self, place: Place) -> str:
        """See `bot.ports.platform.ChannelNames.for_deciding`."""
        return (await self._read(place, DECIDING_S, DECIDING_S)).name

    async def renamed(self, team: TeamId, channel: str) -> None:
        """Slack said so. Its new name is asked for: events may be late, and in any order."""
        await self._store.forget(Place(team, ChannelId(channel), MessageTs("")))
        self._channels.forget(channel)

    async def _read(self, place: Place, fresh_s: float, kept_s: float) -> _Found:
        if place.channel.startswith("D"):
            return _Found(DIRECT)
        kept = await self._store.get(place)
        if _is_within(kept, fresh_s):
            return _Found(kept.name)
        found = await self._look_up(place.channel)
        if found.name == UNKNOWN:
            return _Found(kept.name) if _is_within(kept, kept_s) else found
        if await self._store.keep(place, found.name, kept):
            return found
        # Renamed while Slack was asked, or another replica was quicker.
        kept = await self._store.get(place)
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
        found = _Channel.model_validate(await self._channels.told(channel, 0.0))
        if found.id not in {"", channel} or found.name.startswith(NAMELESS):
            return UNKNOWN
        if found.is_im:
            return DIRECT
        if found.is_mpim or found.name.startswith(_GROUP_NAME):
            return GROUP
        return found.name


class PersonNames:
    """Asks `users.info`: names are kept for five minutes, time zones for an hour."""

    def __init__(self, api: SlackCalls, clock: Callable[[], float]) -> None:
        self._api = api
        self._asked = SingleFlightCache(self._ask, clock)

    async def name(self, user: str) -> str:
        """The display name, or the id when Slack does not say; callers over HTTP it does not know."""
        if user.startswith("@"):
            return user.rpartition("/")[2]
        try:
            return _name_in(await self._asked.get(user, _TTL_S)) or user
        except (SurfaceFailed, SurfaceGone, TimeoutError):
            return user

    async def zone(self, person: Person) -> str:
        """`bot.ports.platform.ZoneOf`: as the person's own Slack is set; an alert has none."""
        if not person.is_somebody:
            return ""
        try:
            zone = (await self._asked.get(person.user, _ZONE_TTL_S)).get("tz")
        except (SurfaceFailed, SurfaceGone, TimeoutError):
            return ""
        # The first look at a zone reads its file.
        known = isinstance(zone, str) and await asyncio.to_thread(is_zone, zone)
        return str(zone) if known else ""

    async def _ask(self, user: str) -> Mapping[str, object]:
        answer = await self._api.call("users.info", user=user)
        found = answer.get("user")
        return found if isinstance(found, dict) else {}


def _name_in(found: Mapping[str, object]) -> str:
    profile = found.get("profile")
    shown = profile.get("display_name") if isinstance(profile, dict) else None
    names = (shown, found.get("real_name"), found.get("name"))
    return next((name for name in names if isinstance(name, str) and name), "")
