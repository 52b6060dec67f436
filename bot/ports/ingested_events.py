"""Events from external systems: deploys, incidents, findings."""

from collections.abc import Sequence
from typing import Protocol

from adapters.told import IngestedEvent


class EventStore(Protocol):
    """Events from outside, unique by (source, id)."""

    async def add(self, found: Sequence[IngestedEvent]) -> int:
        """How many are new: not there already, and their course not at that step."""
        ...
