"""Roles as a table of names."""

from collections.abc import Sequence

from bot.domain.ids import Person

NOT_YOU = "Only responders may decide this."


class RoleTable:
    """`holders` maps a role to user ids; edit it at will."""

    def __init__(self, **holders: set[str]) -> None:
        self.holders = holders
        self.asked: list[tuple[Person, tuple[str, ...]]] = []

    async def refusal(self, person: Person, roles: Sequence[str]) -> str | None:
        self.asked.append((person, tuple(roles)))
        holds = any(person.user in self.holders.get(role, set()) for role in roles)
        return None if holds else NOT_YOU
