"""Display names of channels and people in HTTP answers, and links to threads.

For display only: no check uses these names. The page works while the chat platform is away, so no
request waits long for a name; an unknown one shows its id.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final

from cachetools import LRUCache, TTLCache

from bot.domain.channel import DIRECT, GROUP
from bot.domain.ids import ALERTS, API, MessageTs, Place, UserId
from bot.ports.failures import StorageUnavailable

NAMES_S: Final = 1.0  # all names of one answer, together
REST_S: Final = 30.0  # before an unanswered id is looked up again
MOST_ASKED: Final = 20  # at one look: deciding draws on the same allowance of look-ups
MOST_KEPT: Final = 1_000
_OF_PLATFORM: Final = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)
_DIRECT_ID: Final = re.compile(r"D[A-Z0-9]{2,30}", re.ASCII)
_IN_WORDS: Final = {DIRECT: "direct message", GROUP: "group message"}
_NOBODYS: Final = frozenset({"", "somebody"})

KeptNames = Callable[[Collection[Place]], Awaitable[Mapping[Place, str]]]
LinkOf = Callable[[Place, MessageTs], str]


class Naming:
    """`kept` are the names that channels had when they were last read; it may raise StorageUnavailable."""

    def __init__(
        self,
        kept: KeptNames,
        name_of: Callable[[UserId], Awaitable[str]],
        link_of: LinkOf,
        clock: Callable[[], float],
    ) -> None:
        self._kept = kept
        self._name_of = name_of
        self._link_of = link_of
        self._resting = TTLCache[str, bool](MOST_KEPT, REST_S, clock)
        self._told = LRUCache[str, str](MOST_KEPT)  # known names stay while the platform is away

    async def channels(self, places: Iterable[Place]) -> Mapping[Place, str]:
        """By the places given. Raises StorageUnavailable."""
        asked = tuple(dict.fromkeys(places))
        kept = await self._kept([each for each in asked if each.team != API])
        return {each: called(kept.get(each, ""), each) for each in asked}

    async def people(self, users: Iterable[str]) -> Mapping[str, str]:
        """By the given ids, those with a known name."""
        wanted = sorted(set(users))
        asked = [each for each in wanted if self._may_be_asked(each)]
        asked.sort(key=lambda user: user in self._told)  # those without a name first
        async with asyncio.TaskGroup() as group:
            for user in asked[:MOST_ASKED]:
                group.create_task(self._ask(user))
        named = {user: self._told[user] for user in wanted if user in self._told}
        return named | {ALERTS: "an alert"}

    def link(self, place: Place, ts: str | None) -> str:
        """Where the message can be opened on its platform; empty where that is not possible."""
        return self._link_of(place, MessageTs(ts or ""))

    def _may_be_asked(self, user: str) -> bool:
        is_known_kind = user.startswith("@") or _OF_PLATFORM.fullmatch(user)
        return user != ALERTS and bool(is_known_kind) and user not in self._resting

    async def _ask(self, user: str) -> None:
        try:
            async with asyncio.timeout(NAMES_S):
                name = await self._name_of(UserId(user))
        except (TimeoutError, StorageUnavailable):
            name = ""
        if name in _NOBODYS or name == user:
            self._resting[user] = True
        else:
            self._told[user] = name


def called(name: str, place: Place) -> str:
    """A channel by its name, in words without one; its id if it was never read."""
    if place.team == API:
        return f"#{place.channel}"
    if name in _IN_WORDS or _DIRECT_ID.fullmatch(place.channel):
        return _IN_WORDS.get(name, _IN_WORDS[DIRECT])
    return f"#{name}" if name else place.channel
