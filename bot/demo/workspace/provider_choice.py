"""The page's choice of provider. The server of the workspace supplies it."""

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
    async def options(self) -> Sequence[ProviderOption]: ...

    async def choose(self, provider_id: str) -> None:
        """Raises CannotDoThat when it is unknown or unavailable."""
        ...
