"""Roles as a table of names."""

from collections.abc import Sequence

from bot.domain.ids import Person
from bot.domain.roles import HeldRoles

NOT_YOU = "Only responders may decide this."


class RoleTable:
    """`holders` maps a role to user ids; edit it at will."""

    def __init__(self, **holders: set[str]) -> None:
        self.holders = holders
        self.outsiders: dict[str, str] = {}
        self.asked: list[tuple[Person, tuple[str, ...]]] = []

    async def refusal(
        self, person: Person, roles: Sequence[str], also: Sequence[str] = ()
    ) -> str | None:
        self.asked.append((person, tuple(roles)))
        holds = self._holds(person, roles) and (not also or self._holds(person, also))
        return None if holds else NOT_YOU

    async def outsider(self, person: Person) -> str | None:
        return self.outsiders.get(person.user)

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        return HeldRoles(frozenset(each for each in roles if self._holds(person, (each,))))

    def _holds(self, person: Person, roles: Sequence[str]) -> bool:
        return any(person.user in self.holders.get(role, set()) for role in roles)
