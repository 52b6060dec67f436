"""Names of the people of a place, for a model and its answer."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from adapters.llm.called import called
from bot.domain.ids import ALERTS, Place, UserId
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import NameAt

NAMES_S: Final = 1.0  # all names of one question, together: it waits for them
_NOBODYS: Final = "somebody"  # the name that directories give for an unknown person


class NamesAt:
    """`bot.ports.platform.People`, asked of `name_at`."""

    def __init__(self, name_at: NameAt) -> None:
        self._name_at = name_at

    async def __call__(self, place: Place, users: Iterable[str]) -> Mapping[str, str]:
        asked = sorted(set(users))
        names = await asyncio.gather(*(self._one(place, user) for user in asked))
        return dict(zip(asked, names, strict=True))

    async def _one(self, place: Place, user: str) -> str:
        if user == ALERTS:
            return user
        try:
            async with asyncio.timeout(NAMES_S):
                name = await self._name_at(place, UserId(user))
        except (TimeoutError, StorageUnavailable):
            return user
        return user if name in {_NOBODYS, user} else called(name) or user
