"""Who holds a role now, from user groups, user ids and rotas, and who is mentioned for it.

Roles fail closed.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog
from pydantic import ValidationError

from adapters.errors import AdapterError
from adapters.on_call.port import SLACK_ID, OnCall
from bot.domain.ids import Person, TeamId, UserId
from bot.domain.proposal import Proposal
from bot.domain.roles import HeldRoles, also_words, with_article
from bot.domain.tenancy import HOME
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.single_flight import SingleFlightCache
from bot.slack.api.users import Account, account_of
from bot.slack.api.web_api import Refused

_log = structlog.stdlib.get_logger(__name__)

# A click has to be judged within the 3 s in which Slack wants its answer.
ROTA_TIMEOUT_S = 2.0
ACCOUNT_TTL_S = 60.0  # users.lookupByEmail is Tier 3, fifty a minute
_NO_SUCH_USER = "users_not_found"  # https://docs.slack.dev/reference/methods/users.lookupByEmail


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
            if error.code == _NO_SUCH_USER:
                return ""
            raise
        return _Found.model_validate(answer).user.id


@dataclass(frozen=True, slots=True)
class RoleMembers:
    """One `[roles.NAME]`: user groups, user ids, a rota. All ids belong to one workspace."""

    usergroups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    on_call: OnCall | None = None
    workspace: str = HOME


# usergroups.users.list is Tier 2 (20 a minute): one call per group and TTL. A person who is not in
# a cached group may have just joined it, so a "no" is looked up again after GROUP_RECHECK_S. Rotas
# are cached as long.
GROUP_TTL_S = 60.0
GROUP_RECHECK_S = 10.0

NOBODY = "No role is set for this here, so no one can do it."
CANNOT_CHECK = "I could not check your role with Slack, so nothing changed. Try again."
NO_ROTA = "I could not read the on-call rota, so nothing changed. Try again."
UNKNOWN_PERSON = "I could not check your account with Slack. Try again."
OUTSIDER = "Guests and people of other companies can't open this. Ask a member of this workspace."
DEACTIVATED = "This account is deactivated."


class _GroupAnswer(ApiObject):
    users: tuple[str, ...]


class SlackRoleDirectory:
    """`RoleDirectory` over the Web API. People are looked up at every call, the rest is cached."""

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
        self._groups = SingleFlightCache(self._members, clock)
        self._people = SingleFlightCache(partial(account_of, api), clock)
        self._on_duty = OnDutyDirectory(api, clock)

    async def refusal(
        self, person: Person, roles: Sequence[str], also: Sequence[str] = ()
    ) -> str | None:
        wanted = [each for each in (roles, also) if each]
        if not roles or not all(map(self._is_held, wanted)):
            return NOBODY
        user = await self._look_up(person.user)
        if user is None:
            return CANNOT_CHECK
        if user.deleted:
            return DEACTIVATED
        for each in wanted:
            lacking = await self._lacking(person, user, each)
            if lacking is not None:
                known = lacking in (CANNOT_CHECK, NO_ROTA)
                return lacking if known else f"{lacking} {_who(roles, also)}"
        return None

    async def outsider(self, person: Person) -> str | None:
        user = await self._look_up(person.user)
        if user is None:
            return UNKNOWN_PERSON
        if user.deleted:
            return DEACTIVATED
        if any(person.user in role.users for role in self._roles.values()):
            return None
        return OUTSIDER if self._outside(person, user) is not None else None

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        user = await self._look_up(person.user)
        if user is None:
            return HeldRoles(unread=tuple(roles))
        lacking = {each: await self._without(person, user, each) for each in roles}
        return HeldRoles(
            frozenset(each for each, why in lacking.items() if why is None),
            tuple(each for each, why in lacking.items() if why in (CANNOT_CHECK, NO_ROTA)),
        )

    async def _without(self, person: Person, user: Account, role: str) -> str | None:
        return DEACTIVATED if user.deleted else await self._lacking(person, user, (role,))

    async def members(self, roles: Sequence[str]) -> Sequence[str]:
        """The ids of everyone in the roles; what cannot be looked up counts as empty."""
        found = [user for role in roles for user in sorted((await self.holders(role))[0])]
        return list(dict.fromkeys(found))

    async def holders(self, role: str) -> tuple[frozenset[str], str]:
        """The ids of everyone in the role, and what could not be read."""
        found = {user for known in self._known((role,)) for user in known.users}
        unread = ""
        for group in self._groups_of((role,)):
            members = await self._members_of(group, GROUP_TTL_S)
            found |= members or set()
            unread = (
                unread if members is not None else f"Slack does not list the members of {group}"
            )
        for rota in self._rotas_of((role,)):
            try:
                on_duty = await self._on_duty.now(rota, GROUP_TTL_S)
            except OnCallUnreadable as error:
                return frozenset(found), f"the on-call rota cannot be read: {error}"
            found |= on_duty.users
            unread = unread if on_duty.whole else "Slack does not find the users of these addresses"
        return frozenset(found), unread

    async def on_duty(
        self, roles: Sequence[str], also: Sequence[str] = ()
    ) -> tuple[frozenset[str], bool]:
        """People on call who hold one of `roles` and, if given, one of `also`.

        The second value is False if something could not be read.
        """
        found, whole = set[str](), True
        for rota in self._rotas_of((*roles, *also)):
            try:
                now = await self._on_duty.now(rota, GROUP_TTL_S)
            except OnCallUnreadable:
                whole = False
            else:
                found |= now.users
                whole = whole and now.whole
        for side in (roles, also) if also and found else ():
            held = [await self.holders(role) for role in side]
            found &= frozenset[str]().union(*(users for users, _ in held))
            whole = whole and not any(unread for _, unread in held)
        return frozenset(found), whole

    async def on_call(self) -> Mapping[str, frozenset[str] | None]:
        """The ids of those on call now, by role; None where the rota cannot be read."""
        found: dict[str, frozenset[str] | None] = {}
        for name, role in self._roles.items():
            if role.on_call is not None:
                try:
                    found[name] = (await self._on_duty.now(role.on_call, GROUP_TTL_S)).users
                except OnCallUnreadable:
                    found[name] = None
        return found

    def forget_group(self, usergroup: str) -> None:
        """Drop the cached members, because Slack reported a change."""
        self._groups.forget(usergroup)

    def _known(self, roles: Sequence[str]) -> list[RoleMembers]:
        return [self._roles[name] for name in roles if name in self._roles]

    def _is_held(self, roles: Sequence[str]) -> bool:
        return any(role.usergroups or role.users or role.on_call for role in self._known(roles))

    def _groups_of(self, roles: Sequence[str]) -> Sequence[str]:
        return list(dict.fromkeys(g for role in self._known(roles) for g in role.usergroups))

    def _rotas_of(self, roles: Sequence[str]) -> Sequence[OnCall]:
        found = (role.on_call for role in self._known(roles) if role.on_call is not None)
        return list(dict.fromkeys(found))

    async def _lacking(self, person: Person, user: Account, roles: Sequence[str]) -> str | None:
        if any(person.user in role.users for role in self._known(roles)):
            return None
        if (stranger := self._outside(person, user)) is not None:
            return stranger
        unread = []
        for group in self._groups_of(roles):
            found = await self._is_in_group(person.user, group)
            if found:
                return None
            unread += [CANNOT_CHECK] if found is None else []
        for rota in self._rotas_of(roles):
            missing = await self._not_on_duty(person.user, rota)
            if missing is None:
                return None
            unread += [missing] if missing else []
        return unread[-1] if unread else "You don't have the role for this."

    def _outside(self, person: Person, user: Account) -> str | None:
        if user.is_bot:
            return "Bots can't decide."
        if user.is_stranger or person.team != self._team:
            return "You are in another workspace, so you can't decide here."
        if user.is_elsewhere(self._team):
            return "Your account belongs to another workspace, so you can't decide here."
        if user.is_guest:
            return "Guests can't confirm."
        return None

    async def _is_in_group(self, user: UserId, group: str) -> bool | None:
        members = await self._members_of(group, GROUP_TTL_S)
        if members is not None and user not in members:
            members = await self._members_of(group, GROUP_RECHECK_S)
        return None if members is None else user in members

    async def _members_of(self, group: str, max_age_s: float) -> frozenset[str] | None:
        try:
            return await self._groups.get(group, max_age_s)
        except (SurfaceFailed, SurfaceGone, TimeoutError, ValidationError) as error:
            _log.warning("slack.role.lookup_failed", error=type(error).__name__)
            return None

    async def _not_on_duty(self, user: UserId, rota: OnCall) -> str | None:
        try:
            on_duty = await self._on_duty.now(rota, GROUP_TTL_S)
            if user not in on_duty.users:
                on_duty = await self._on_duty.now(rota, GROUP_RECHECK_S)
        except OnCallUnreadable:
            return NO_ROTA
        if user in on_duty.users:
            return None
        return "" if on_duty.whole else CANNOT_CHECK

    async def _look_up(self, user: UserId) -> Account | None:
        try:
            return await self._people.get(user, 0.0)
        except (SurfaceFailed, SurfaceGone, TimeoutError, ValidationError) as error:
            _log.warning("slack.person.lookup_failed", error=type(error).__name__)
            return None

    async def _members(self, usergroup: str) -> frozenset[str]:
        answer = await self._api.call("usergroups.users.list", usergroup=usergroup)
        return frozenset(_GroupAnswer.model_validate(answer).users)


def _who(roles: Sequence[str], also: Sequence[str]) -> str:
    words = also_words(also)
    both = f" who is {words if words == 'on call' else f'also {words}'}" if also else ""
    return f"Ask {' or '.join((with_article(roles[0]), *roles[1:]))}{both}."


# A card does not wait longer for a rota; one rota and its accounts take 2 s at most each.
LOOK_UP_S = 4.0
UNREAD = "The on-call rota could not be read, so no one was mentioned."


@dataclass(frozen=True, slots=True)
class Paged:
    """Ids of user groups and people to mention, and in words who could not be looked up."""

    ids: Sequence[str] = ()
    unread: str = ""


NOT_PAGED = Paged()


@dataclass(slots=True, eq=False, repr=False)
class Paging:
    """`roles` are the ones in force, by name."""

    roles: Mapping[str, RoleMembers]
    directory: SlackRoleDirectory
    look_up_s: float = LOOK_UP_S

    def listed(self, row: Proposal) -> Paged:
        """Groups and people of the roles that may decide. Nothing is asked."""
        known = [self.roles[one] for one in row.confirm_roles if one in self.roles]
        return Paged(_once([each for one in known for each in (*one.usergroups, *one.users)]))

    async def called(self, row: Proposal) -> Paged:
        """The people on call, then the listed groups and people. Never raises."""
        listed = self.listed(row).ids
        try:
            async with asyncio.timeout(self.look_up_s):
                on_duty, whole = await self.directory.on_duty(row.confirm_roles, row.action_roles)
        except TimeoutError:
            _log.warning("proposal.card.on_call_unreadable", proposal=row.id)
            on_duty, whole = frozenset[str](), False
        return Paged(_once([*sorted(on_duty), *listed]), "" if whole else UNREAD)


def _once(ids: Sequence[str]) -> Sequence[str]:
    return list(dict.fromkeys(ids))
