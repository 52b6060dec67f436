"""What other systems tell: deploys, incidents, findings."""

from typing import Protocol

from adapters.told import IngestedEvent


class EventStore(Protocol):
    """Events from outside, unique by (source, id)."""

    async def add(self, event: IngestedEvent) -> bool:
        """False when it was there already, or its course is at that step."""
        ...
