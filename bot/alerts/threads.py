"""The threads of alerts: posted once, asked once and updated, from rows alone.

Pending work is in the database, so that another process can continue after a crash at any step. The
message carries a mark to find it by, and the turn an id derived from the message.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from bot.alerts.words import question
from bot.domain.alerts import AlertThread, Investigation
from bot.domain.ids import ALERTS, MessageTs, Person, Place, TeamId
from bot.domain.session import Ask
from bot.ports.alerts import AlertClaim, AlertStore, AlertSurface
from bot.ports.durability import Workflows
from bot.ports.failures import MessageGone, StorageUnavailable, SurfaceFailed, SurfaceGone
from tools.redactor import RedactionFailed, Redactor

log = structlog.get_logger(__name__)

BATCH: Final = 10
CALL_TIMEOUT_S: Final = 20.0  # with the waits that a platform asks for
# Longer than the calls: a post that was given up on may still land, and is looked for afterwards.
CLAIM_CALLS: Final = 1.5
# What changes within so long is one edit: a storm must not take the edits of the answers.
GATHER_S: Final = 10.0
# Between tries: doubled from the first up to the second; the third where the channel is closed to us.
_AGAIN_S: Final = (5.0, 60.0, 600.0)
# A thread that could not be opened for so long is of no use to anybody any more.
GIVE_UP_S: Final = 3_600.0

Shown = Callable[[str], None]


class _OpeningGone(Exception):
    """A person deleted the message: a new one shows the firing alerts, without another question."""


class AlertThreads:
    """Shows the due threads. Any number of replicas may run it; one at a time owns each thread."""

    def __init__(
        self,
        store: AlertStore,
        surface: AlertSurface,
        workflows: Workflows,
        team: TeamId,
        redactor: Redactor,
        counted: Shown = lambda _what: None,
        *,
        call_timeout_s: float = CALL_TIMEOUT_S,
        gather_s: float = GATHER_S,
    ) -> None:
        self._store = store
        self._surface = surface
        self._workflows = workflows
        self._team = team
        self._redactor = redactor
        self._counted = counted
        self._call_timeout_s = call_timeout_s
        self._gather_s = gather_s

    async def run(self) -> None:
        """Show all that is due. Raises StorageUnavailable: a later run continues."""
        while due := await self._store.due(BATCH):
            async with asyncio.TaskGroup() as group:
                for thread in due:
                    group.create_task(self._shown(thread))

    async def _shown(self, thread: str) -> None:
        with suppress(StorageUnavailable):  # a later run's
            claim = await self._store.claim(thread, CLAIM_CALLS * self._call_timeout_s)
            if claim is not None:
                await self._show(claim)

    async def _show(self, claim: AlertClaim) -> None:
        thread = claim.thread
        try:
            async with asyncio.timeout(self._call_timeout_s):
                await self._told(claim)
        except _OpeningGone:
            log.info("alerts.thread.reopened", thread=thread.id)
            await self._store.failed(claim, 0.0)
            return
        except MessageGone:
            log.info("alerts.thread.deleted", thread=thread.id)
        except SurfaceGone as error:
            log.error("alerts.channel.closed", channel=thread.channel, error=str(error))
            if thread.thread_ts is None and not _is_old(claim):
                await self._store.failed(claim, _AGAIN_S[2])
                return
        except (SurfaceFailed, RedactionFailed) as error:
            log.info("alerts.thread.delayed", thread=thread.id, error=str(error))
            await self._store.failed(claim, _later_s(claim.tries))
            return
        except TimeoutError:
            log.warning("alerts.thread.unconfirmed", thread=thread.id)
            return
        await self._store.showed(claim, self._gather_s)

    async def _told(self, claim: AlertClaim) -> None:
        thread, tried = claim.thread, claim.tries > 1
        place = Place(self._team, thread.channel, thread.thread_ts or MessageTs(""))
        if thread.thread_ts is None:
            posted = await self._surface.open_alerts(thread, place, may_be_there=tried)
            kept = await self._store.opened(thread.id, posted)
            place = Place(self._team, thread.channel, kept)
            if kept != posted:  # the process paused for longer than its claim
                await self._surface.take_back(place, posted)
            self._counted("opened")
        if thread.investigation is Investigation.DUE:
            await self._ask(thread, place)
        if thread.thread_ts is not None:
            await self._updated(thread, place, thread.thread_ts)
        if thread.ends:
            line = await self._surface.tell_end(thread, place, may_be_there=tried)
            if thread.note_ts is None:
                await self._store.noted(thread.id, line)

    async def _updated(self, thread: AlertThread, place: Place, ts: MessageTs) -> None:
        """Raises _OpeningGone if a firing alert would otherwise stay unseen."""
        try:
            await self._surface.update_alerts(thread, place, ts)
        except MessageGone:
            if not thread.firing:
                raise
            await self._store.lost(thread.id, ts)
            raise _OpeningGone from None

    async def _ask(self, thread: AlertThread, place: Place) -> None:
        text = self._redactor.redact(question(thread))
        ask = Ask(place, place.thread_ts, Person(self._team, ALERTS), text)
        await self._workflows.start_turn(ask)
        await self._store.begun(thread.id)
        self._counted("investigated")


def _is_old(claim: AlertClaim) -> bool:
    return (claim.until - claim.thread.opened_at).total_seconds() > GIVE_UP_S


def _later_s(tries: int) -> float:
    first, most, _ = _AGAIN_S
    return min(math.ldexp(first, min(tries - 1, 8)), most)
