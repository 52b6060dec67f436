"""Workspaces that installed the app, as they are stored: each with its own token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.domain.ids import TeamId, UserId


@dataclass(frozen=True, slots=True)
class Installed:
    """One workspace. `revision` is counted up with every change of it; of a new one it is 0."""

    team: TeamId
    bot_user: UserId
    bot_id: str
    token: str = field(repr=False)
    app_id: str = ""
    enterprise: str = ""
    site: str = ""  # the workspace's address
    revision: int = 0


class Installations(Protocol):
    """Over all replicas. Every method raises StorageUnavailable."""

    async def save(self, installed: Installed, by: str) -> None:
        """In place of what there was, with its audit row."""
        ...

    async def find(self, team: TeamId) -> Installed | None:
        """None where it did not install the app, removed it, or its token cannot be opened."""
        ...

    async def all(self) -> Sequence[Installed]: ...

    async def revisions(self) -> Mapping[TeamId, int]: ...

    async def remove(self, team: TeamId, why: str, revision: int | None = None) -> bool:
        """Forget its token, with an audit row; with a revision, only if it is still that one.

        Whether there was one.
        """
        ...


class OAuthStates(Protocol):
    """What ties the end of an installation to its beginning. Raises StorageUnavailable."""

    async def issue(self) -> str | None:
        """A fresh one, good for ten minutes; None while too many are under way."""
        ...

    async def consume(self, state: str) -> bool:
        """Whether it was good; it is not any more."""
        ...
