"""People by id, as `users.info` describes them: their account, their display name, their time zone."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from bot.domain.ids import Person
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.single_flight import SingleFlightCache
from tools.time_zones import is_zone

NAME_TTL_S: Final = 300.0
ZONE_TTL_S: Final = 3600.0


class Account(ApiObject):
    """A person's account. Slack omits some flags for some kinds of people."""

    id: str
    team_id: str = ""
    deleted: bool = False
    is_bot: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False

    @property
    def is_guest(self) -> bool:
        return self.is_restricted or self.is_ultra_restricted

    def is_elsewhere(self, team: str) -> bool:
        return self.team_id not in {"", team}


class _Answer(ApiObject):
    user: Account


async def account_of(api: SlackCalls, user: str) -> Account:
    """The account as `users.info` describes it now.

    Raises SurfaceGone, SurfaceFailed, ValidationError.

    An answer about another user id counts as failed.
    """
    found = _Answer.model_validate(await api.call("users.info", user=user)).user
    if found.id != user:
        raise SurfaceFailed("users.info answered about another user", retryable=True)
    return found


class PersonNames:
    """Display names, cached for five minutes, and time zones, cached for an hour."""

    def __init__(self, api: SlackCalls, clock: Callable[[], float]) -> None:
        self._api = api
        self._asked = SingleFlightCache(self._ask, clock)

    async def name(self, user: str) -> str:
        """The display name, or the id if Slack has none.

        People of the HTTP API have no id at Slack.
        """
        if user.startswith("@"):
            return user.rpartition("/")[2]
        try:
            return _name_in(await self._asked.get(user, NAME_TTL_S)) or user
        except (SurfaceFailed, SurfaceGone, TimeoutError):
            return user

    async def zone(self, person: Person) -> str:
        """`bot.ports.platform.ZoneOf`: the time zone of the Slack profile; empty for an alert."""
        if not person.is_somebody:
            return ""
        try:
            zone = (await self._asked.get(person.user, ZONE_TTL_S)).get("tz")
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
