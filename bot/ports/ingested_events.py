"""Events from external systems: deploys, incidents, findings."""

from collections.abc import Sequence
from typing import Protocol

from adapters.ingested_event import IngestedEvent


class EventStore(Protocol):
    """Events from outside, unique by (source, id)."""

    async def add(self, found: Sequence[IngestedEvent]) -> int:
        """How many are new: not there already, and their course not at that step."""
        ...


class FeedStates:
    """What this process could not read of the feeds of deploys."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[int, bool]] = {}

    def note(self, feed: str, unread: int, *, fails: bool) -> None:
        """Keep how many entries of the last day could not be read, and whether the feed fails now."""
        self._states[feed] = unread, fails

    @property
    def unread(self) -> int:
        """Entries that could not be read, of all feeds."""
        return sum(unread for unread, _ in self._states.values())

    @property
    def failing(self) -> int:
        """How many feeds fail now."""
        return sum(fails for _, fails in self._states.values())
