"""Who is in which role, from Slack's user groups and lists of user ids, now. Fails closed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from bot.domain.ids import Person, TeamId, UserId
from bot.ports import SurfaceFailed, SurfaceGone
from bot.slack.calls import SlackCalls
from bot.slack.fresh import Fresh

_log = structlog.stdlib.get_logger(__name__)

# usergroups.users.list is Tier 2 (20 a minute): one call per group and TTL. Someone who is not in
# a cached group may have joined it just now, so a "no" is asked again after GROUP_RECHECK_S.
GROUP_TTL_S = 60.0
GROUP_RECHECK_S = 10.0

NOBODY = "Nobody may decide this here: no role is set for this channel."
CANNOT_CHECK = "I could not check your role with Slack, so nothing was changed. Try again."
DEACTIVATED = "This account is deactivated."


@dataclass(frozen=True, slots=True)
class RoleMembers:
    """One `[roles.NAME]`: everyone in the user groups, and the users named by id."""

    usergroups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


class _User(BaseModel):
    """What we read of `users.info`. Slack leaves flags out for some kinds of people."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str
    team_id: str = ""
    deleted: bool = False
    is_bot: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False


class _UserAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    user: _User


class _GroupAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    users: tuple[str, ...]


class SlackRoleDirectory:
    """`RoleDirectory` over the Web API. People are looked up at every call, groups are cached."""

    def __init__(
        self,
        api: SlackCalls,
        team: TeamId,
        roles: Mapping[str, RoleMembers],
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._team = team
        self._roles = roles
        self._groups = Fresh(self._members, clock)
        self._people = Fresh(self._person, clock)

    async def refusal(self, person: Person, roles: Sequence[str]) -> str | None:
        """See `RoleDirectory.refusal`."""
        known = [self._roles[name] for name in roles if name in self._roles]
        if not any(role.usergroups or role.users for role in known):
            return NOBODY
        user = await self._look_up(person.user)
        if user is None:
            return CANNOT_CHECK
        if user.deleted:
            return DEACTIVATED
        if any(person.user in role.users for role in known):
            return None
        if (stranger := self._outside(person, user)) is not None:
            return f"{stranger} {self._who(roles)}"
        groups = dict.fromkeys(group for role in known for group in role.usergroups)
        return await self._group_refusal(person.user, tuple(groups), roles)

    async def members(self, roles: Sequence[str]) -> Sequence[str]:
        """The ids of everyone in the roles; a group that cannot be looked up counts as empty."""
        known = [self._roles[name] for name in roles if name in self._roles]
        found = [user for role in known for user in role.users]
        for group in dict.fromkeys(group for role in known for group in role.usergroups):
            try:
                found += sorted(await self._groups.get(group, GROUP_TTL_S))
            except (SurfaceFailed, SurfaceGone, TimeoutError, ValidationError) as error:
                _log.warning("slack.role.lookup_failed", error=type(error).__name__)
        return list(dict.fromkeys(found))

    def forget_group(self, usergroup: str) -> None:
        """Slack said that its members changed."""
        self._groups.forget(usergroup)

    def _outside(self, person: Person, user: _User) -> str | None:
        if user.is_bot:
            return "Bots may not decide."
        if user.is_stranger or person.team != self._team:
            return "You are in another workspace, so you may not decide here."
        if user.team_id and user.team_id != self._team:
            return "Your account belongs to another workspace, so you may not decide here."
        if user.is_restricted or user.is_ultra_restricted:
            return "Guests may not decide."
        return None

    async def _group_refusal(
        self, user: UserId, groups: Sequence[str], roles: Sequence[str]
    ) -> str | None:
        failed = False
        for group in groups:
            try:
                members = await self._groups.get(group, GROUP_TTL_S)
                if user not in members:
                    members = await self._groups.get(group, GROUP_RECHECK_S)
            except (SurfaceFailed, SurfaceGone, TimeoutError, ValidationError) as error:
                _log.warning("slack.role.lookup_failed", error=type(error).__name__)
                failed = True
                continue
            if user in members:
                return None
        return CANNOT_CHECK if failed else f"You may not decide this. {self._who(roles)}"

    async def _look_up(self, user: UserId) -> _User | None:
        try:
            found = await self._people.get(user, 0.0)
        except (SurfaceFailed, SurfaceGone, TimeoutError, ValidationError) as error:
            _log.warning("slack.person.lookup_failed", error=type(error).__name__)
            return None
        return found if found.id == user else None

    async def _person(self, user: str) -> _User:
        answer = await self._api.call("users.info", user=user)
        return _UserAnswer.model_validate(answer).user

    async def _members(self, usergroup: str) -> frozenset[str]:
        answer = await self._api.call("usergroups.users.list", usergroup=usergroup)
        return frozenset(_GroupAnswer.model_validate(answer).users)

    @staticmethod
    def _who(roles: Sequence[str]) -> str:
        return f"Ask someone in the role {' or '.join(roles)}."
