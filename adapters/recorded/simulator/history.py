"""Incidents of the past, searched as stored ones are, and the written pages of the shop's team."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib import resources
from typing import Final

from adapters.recorded.simulator.topology import SHOP
from adapters.written_pages import PageSet, read_page
from tools.capabilities import IncidentHistory, IncidentQuery, PastIncident
from tools.errors import InvalidArguments
from tools.search_words import weight, words_of

_FOLDER: Final = resources.files(__package__).joinpath("written")
PAGES: Final = tuple(
    (file, _FOLDER.joinpath(file).read_text(encoding="utf-8"))
    for file in (
        "runbooks/checkout-slow.md",
        "runbooks/connection-pool-exhausted.md",
        "patterns/postgres.md",
        "patterns/stateless-service.md",
    )
)


def recorded_pages() -> PageSet:
    """The same for every incident."""
    return PageSet([read_page(file, text) for file, text in PAGES])


class RecordedHistory:
    """A fixed set of incidents, after the bot's own sessions from `beside`.

    Each of the two gets at least half of the places.
    """

    def __init__(
        self, incidents: Sequence[PastIncident], beside: IncidentHistory | None = None
    ) -> None:
        self._incidents = incidents
        self._beside = beside

    async def search(self, query: IncidentQuery) -> Sequence[PastIncident]:
        """The best first. Raises InvalidArguments (no word to search by), CapabilityUnavailable."""
        own = list(await self._beside.search(query)) if self._beside is not None else []
        found = self._found(query)
        places = max(query.limit - len(found), query.limit // 2)
        return [*own[:places], *found][: query.limit]

    def _found(self, query: IncidentQuery) -> list[PastIncident]:
        asked = words_of(query.text)
        if not asked:
            raise InvalidArguments("query: name words of the incident, e.g. 'checkout timeouts'")
        words = {one.id: set(words_of(f"{_text(one)}")) for one in self._incidents}
        counts = {word: sum(word in held for held in words.values()) for word in asked}
        scored = [
            (weight(counts, words[one.id], set(words_of(one.title))), one)
            for one in self._incidents
            if _fits(one, query)
        ]
        scored.sort(key=lambda pair: (-pair[0], -pair[1].opened_at.timestamp()))
        return [one for score, one in scored if score > 0]


def _text(one: PastIncident) -> str:
    return f"{one.title} {one.product} {one.severity} {one.resolution}"


def _fits(one: PastIncident, query: IncidentQuery) -> bool:
    if query.product and one.product != query.product:
        return False
    when = query.interval
    return when is None or when.start <= one.opened_at < when.end


def past_incidents(anchor: datetime) -> tuple[PastIncident, ...]:
    """Those of `shop.toml`, the newest first."""
    return tuple(
        PastIncident(
            id=f"shop:INC-{240 - number}",
            title=one["title"],
            opened_at=(opened := anchor - timedelta(days=one["days_ago"], minutes=17)),
            closed_at=opened + timedelta(minutes=one["minutes"]),
            product=one["product"],
            severity=one["severity"],
            resolution=one["resolution"],
        )
        for number, one in enumerate(SHOP["past"])
    )
