"""What the page needs to offer a choice of provider. Whoever serves the workspace brings it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ProviderOption:
    """One provider. `reason` says why it is unavailable, or what it is."""

    id: str
    label: str
    available: bool
    reason: str = ""
    chosen: bool = False


class ProviderChoice(Protocol):
    """Who answers from now on."""

    async def options(self) -> Sequence[ProviderOption]:
        """All of them, in the order to show."""
        ...

    async def choose(self, provider_id: str) -> None:
        """Raises CannotDoThat when it is unknown or unavailable."""
        ...
