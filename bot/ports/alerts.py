"""Threads that alerts open: on record first, then shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.domain.alerts import AlertLimits, AlertThread, FiledAlert
from bot.domain.ids import MessageTs, Place


@dataclass(frozen=True, slots=True)
class AlertClaim:
    """Leave to show one thread's alerts for a while. `wanted`: which of its changes that shows.

    `tries`: how often it was tried since it was last shown, with this one.
    """

    thread: AlertThread
    wanted: int
    tries: int
    until: datetime


class AlertStore(Protocol):
    """Over all replicas; every method raises StorageUnavailable."""

    async def file(self, found: Sequence[FiledAlert], limits: AlertLimits) -> None:
        """Add alerts to their threads; a thread is recorded if there is no match.

        All or none. The same alerts again change only a count.
        """
        ...

    async def due(self, limit: int) -> Sequence[str]:
        """Threads with changes to show that no replica is showing."""
        ...

    async def claim(self, thread: str, for_s: float) -> AlertClaim | None:
        """Claim the thread to show it; None if it is shown, claimed, or waiting."""
        ...

    async def opened(self, thread: str, ts: MessageTs) -> MessageTs:
        """Its message was posted, or found; which one it is from now on: the first stays."""
        ...

    async def lost(self, thread: str, ts: MessageTs) -> None:
        """The thread's message is gone. The thread has none until it is opened again."""
        ...

    async def noted(self, thread: str, ts: MessageTs) -> None:
        """The message about the end was posted or found."""
        ...

    async def begun(self, thread: str) -> None:
        """Its investigation has a durable start."""
        ...

    async def showed(self, claim: AlertClaim, again_s: float) -> None:
        """The claimed changes are visible; the next ones wait so many seconds."""
        ...

    async def failed(self, claim: AlertClaim, again_s: float) -> None:
        """It could not be shown; it may be claimed again after so many seconds."""
        ...

    async def at(self, place: Place) -> AlertThread | None: ...


class AlertSurface(Protocol):
    """Where people see them. Every method raises SurfaceGone, SurfaceFailed."""

    async def open_alerts(
        self, thread: AlertThread, place: Place, *, may_be_there: bool
    ) -> MessageTs:
        """Post the message that opens the thread, or find the one an earlier try posted."""
        ...

    async def take_back(self, place: Place, ts: MessageTs) -> None:
        """Remove a message that another process posted as well."""
        ...

    async def update_alerts(self, thread: AlertThread, place: Place, ts: MessageTs) -> None:
        """Edit the message to show their current state."""
        ...

    async def tell_end(self, thread: AlertThread, place: Place, *, may_be_there: bool) -> MessageTs:
        """Say in the thread that they are resolved, or fire again; one line, edited."""
        ...
