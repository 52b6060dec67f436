"""The Slack accounts of people on call, cached for a minute at most."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from pydantic import ValidationError

from adapters.errors import AdapterError
from adapters.on_call.port import SLACK_ID, OnCall
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.single_flight import SingleFlightCache
from bot.slack.api.web_api import Refused

_log = structlog.stdlib.get_logger(__name__)

# A click has to be judged within the 3 s in which Slack wants its answer.
ROTA_TIMEOUT_S = 2.0
ACCOUNT_TTL_S = 60.0  # users.lookupByEmail is Tier 3, fifty a minute
_NOBODY = "users_not_found"  # https://docs.slack.dev/reference/methods/users.lookupByEmail


class OnCallUnreadable(Exception):
    """The rota could not be read."""


@dataclass(frozen=True, slots=True)
class OnDuty:
    """Accounts on call. `whole` is False if Slack did not answer for everyone.

    `without_account` counts people on call without an account in this workspace.
    """

    users: frozenset[str]
    whole: bool
    without_account: int


class _Account(ApiObject):
    id: str


class _Found(ApiObject):
    user: _Account


class OnDutyDirectory:
    def __init__(self, api: SlackCalls, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._names: dict[
            OnCall, SingleFlightCache[frozenset[str]]
        ] = {}  # each rota that was ever configured
        self._accounts = SingleFlightCache(self._account, clock)

    async def now(self, rota: OnCall, max_age_s: float) -> OnDuty:
        """The people on call, by a rota at most `max_age_s` old. Raises OnCallUnreadable."""
        if rota not in self._names:
            self._names[rota] = SingleFlightCache(
                lambda _: rota.people(), self._clock, ROTA_TIMEOUT_S
            )
        try:
            names = await self._names[rota].get("", max_age_s)
        except (AdapterError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            _log.warning("on_call.unreadable", why=why)
            raise OnCallUnreadable(why) from error
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._user(name)) for name in sorted(names)]
        users = [task.result() for task in asked]
        return OnDuty(frozenset(user for user in users if user), None not in users, users.count(""))

    async def _user(self, name: str) -> str | None:
        if SLACK_ID.fullmatch(name):
            return name
        try:
            return await self._accounts.get(name, ACCOUNT_TTL_S)
        except (SurfaceFailed, SurfaceGone, TimeoutError, ValidationError) as error:
            _log.warning("on_call.account_lookup_failed", error=type(error).__name__)
            return None

    async def _account(self, email: str) -> str:
        try:
            answer = await self._api.call("users.lookupByEmail", email=email)
        except Refused as error:
            if error.code == _NOBODY:
                return ""
            raise
        return _Found.model_validate(answer).user.id
