"""What other systems tell: deploys, incidents, findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class IngestedEvent:
    """One CloudEvent from outside: a deploy, an incident, a finding."""

    id: str
    source: str
    type: str
    product: str
    at: datetime
    data: Mapping[str, JsonValue]


class EventStore(Protocol):
    """Events from outside, unique by (source, id)."""

    async def add(self, event: IngestedEvent) -> bool:
        """False when it was there already."""
        ...
