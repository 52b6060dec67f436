"""Who callers over HTTP are: their roles and names, asked of the database each time. Fails closed."""

from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from bot.domain.callers import CallerKind, KnownCaller
from bot.domain.ids import Person, TeamId, UserId
from bot.domain.roles import NO_ROLES, HeldRoles, with_article
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import RoleDirectory
from bot.store.callers import StoredCallers

_log = structlog.stdlib.get_logger(__name__)

NOBODY: Final = "No role is set for this here, so no one can do it."
CANNOT_CHECK: Final = "I could not check your role, so nothing changed. Try again."
UNKNOWN: Final = "Your token is not valid any more."
NO_SERVICE: Final = "Services can't decide: use a person's token."


class CallerRoles:
    """`bot.ports.platform.RoleDirectory` of the roles on tokens and those of an identity provider."""

    def __init__(self, callers: StoredCallers) -> None:
        self._callers = callers

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        try:
            caller = await self._callers.known(person.user)
        except StorageUnavailable as error:
            _log.warning("caller.lookup_failed", error=str(error))
            return HeldRoles(unread=tuple(roles))
        return HeldRoles(caller.roles & set(roles)) if caller else NO_ROLES

    async def refusal(
        self, person: Person, roles: Sequence[str], also: Sequence[str] = ()
    ) -> str | None:
        """See `RoleDirectory.refusal`. A service is refused, with any roles."""
        if not roles:
            return NOBODY
        caller = await self._known(person)
        if isinstance(caller, str):
            return caller
        if caller.kind is not CallerKind.PERSON:
            return NO_SERVICE
        for wanted in (roles, also):
            if wanted and not caller.roles.intersection(wanted):
                return f"You don't have the role for this. Ask {' or '.join(map(with_article, wanted))}."
        return None

    async def outsider(self, person: Person) -> str | None:
        caller = await self._known(person)
        return caller if isinstance(caller, str) else None

    async def name(self, user: UserId) -> str:
        """What people call a caller; never an id."""
        try:
            return await self._callers.name(user) or "somebody"
        except StorageUnavailable:
            return "somebody"

    async def _known(self, person: Person) -> KnownCaller | str:
        try:
            return await self._callers.known(person.user) or UNKNOWN
        except StorageUnavailable as error:
            _log.warning("caller.lookup_failed", error=str(error))
            return CANNOT_CHECK


class HomeRoles:
    """`RoleDirectory` of callers: people of the home workspace by its directory, other callers by
    their tokens.

    Another workspace's people hold no role here, even one with the same name.
    """

    def __init__(self, by_team: Mapping[TeamId, RoleDirectory]) -> None:
        self._by_team = by_team

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        directory = self._by_team.get(person.team)
        return await directory.held(person, roles) if directory else HeldRoles(unread=tuple(roles))

    async def refusal(
        self, person: Person, roles: Sequence[str], also: Sequence[str] = ()
    ) -> str | None:
        directory = self._by_team.get(person.team)
        return await directory.refusal(person, roles, also) if directory else UNKNOWN

    async def outsider(self, person: Person) -> str | None:
        directory = self._by_team.get(person.team)
        return await directory.outsider(person) if directory else UNKNOWN
