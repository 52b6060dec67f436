"""`bot.ports.platform.ChatSurface` for conversations over HTTP: an ordered log in the database.

An event is a row before any client reads it, so a reader can continue from any replica, and a slow
or lost one delays nothing. All answers of a process are written by one task, a few times a second.
"""

import asyncio
import math
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import structlog

from bot.domain.chart import Chart
from bot.domain.chats import ChatSession, NewChatEvent
from bot.domain.ids import MessageTs, Place, UserId
from bot.domain.proposal import Proposal
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import PlatformTraits
from bot.web.api.chat import wire
from bot.web.api.chat.stream import ChatAnswerStream, ChatServices
from tools.redactor import RedactionFailed

_log = structlog.stdlib.get_logger(__name__)

WRITE_S: Final = 0.25  # between two writes of one answer
BETWEEN_S: Final = 0.02  # of all answers together: fifty writes a second, however many grow
_SESSIONS_KEPT: Final = 2_000
WAITING: Final = "Queued: other answers are running."
IN_LINE: Final = "Queued after the question before it."

TRAITS: Final = PlatformTraits(
    name="api",
    card_chars=1_000_000,
    preview_chars=1_000_000,
    message_chars=1_000_000,
    edits_per_minute=math.inf,
    private_messages=True,
    forms=True,
    native_stream=True,
)


class ChatLogSurface:
    """Over one database. Its answers grow while `running`."""

    def __init__(self, services: ChatServices, write_s: float = WRITE_S) -> None:
        self._services = services
        self._write_s = write_s
        self._sessions: dict[str, ChatSession] = {}
        self._due: set[ChatAnswerStream] = set()
        self._work = asyncio.Event()

    @property
    def traits(self) -> PlatformTraits:
        """A log shows anything whole."""
        return TRAITS

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(self._write_all(), name="chat answers")
            try:
                yield
            finally:
                writing.cancel()

    async def open_answer(self, ask: Ask) -> MessageTs:
        """The question's own number: its answer is beside it. Raises SurfaceGone, SurfaceFailed."""
        await self._at(ask.place)
        return ask.ts

    def stream(self, ask: Ask, ts: MessageTs) -> ChatAnswerStream:  # noqa: ARG002 - the port's
        """Once this one writes, an earlier writer of that answer stops."""
        find = partial(self._at, ask.place)
        return ChatAnswerStream(self._services, find, ask.ts, uuid.uuid4().hex, self._is_due)

    async def show_card(self, proposal: Proposal) -> MessageTs:
        """The proposal's state, as an event; a reader requests the rest.

        Raises SurfaceGone, SurfaceFailed.
        """
        await self._say(proposal.place, lambda _session: wire.proposed(proposal))
        return MessageTs(proposal.id)

    async def say(
        self,
        place: Place,
        text: str,
        key: str,
        charts: Sequence[Chart] = (),  # noqa: ARG002 - the port's
    ) -> MessageTs:
        """A notice of the session, once per `key`. Raises SurfaceGone, SurfaceFailed."""
        await self._say(place, lambda session: self._notice(session, text, f"say:{key}"))
        return MessageTs(key)

    async def whisper(
        self,
        place: Place,
        user: UserId,
        text: str,
        charts: Sequence[Chart] = (),  # noqa: ARG002 - the port's
    ) -> None:
        try:
            await self._say(place, lambda session: self._notice(session, text, None, user))
        except (SurfaceGone, SurfaceFailed) as error:
            _log.info("chat.private_message.undelivered", error=str(error))

    async def show_waiting(self, ask: Ask) -> None:
        """Show that other questions are answered first; best effort."""
        await self._wait(ask, WAITING)

    async def show_in_line(self, ask: Ask) -> None:
        """Show that an earlier question is answered first; best effort."""
        await self._wait(ask, IN_LINE)

    async def _wait(self, ask: Ask, words: str) -> None:
        with suppress(SurfaceGone, SurfaceFailed):
            told = wire.notice(ask.ts, words, f"wait:{ask.ts}")
            await self._say(ask.place, lambda _session: told)

    def _notice(
        self, session: ChatSession, text: str, key: str | None, to: str = ""
    ) -> NewChatEvent:
        return wire.notice("", self._services.redact(session, text), key, to)

    async def _say(self, place: Place, event: Callable[[ChatSession], NewChatEvent]) -> None:
        session = await self._at(place)
        try:
            is_told = await self._services.chats.say(session.id, event(session))
        except StorageUnavailable as error:
            raise SurfaceFailed(str(error), retryable=True) from error
        except RedactionFailed as error:
            raise SurfaceFailed("could not be redacted", retryable=False) from error
        if not is_told:
            self._sessions.pop(place.key, None)
            raise SurfaceGone("this conversation no longer exists")
        self._services.notify(session.id)

    async def _at(self, place: Place) -> ChatSession:
        known = self._sessions.get(place.key)
        if known is not None:
            return known
        try:
            found = await self._services.chats.at(place)
        except StorageUnavailable as error:
            raise SurfaceFailed(str(error), retryable=True) from error
        if found is None:
            raise SurfaceGone("there is no such conversation")
        while len(self._sessions) >= _SESSIONS_KEPT:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[place.key] = found
        return found

    def _is_due(self, stream: ChatAnswerStream) -> None:
        self._due.add(stream)
        self._work.set()

    async def _write_all(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            due, self._due = self._due, set()
            await asyncio.gather(*map(self._write, due))
            await asyncio.sleep(max(self._write_s, len(due) * BETWEEN_S))

    async def _write(self, stream: ChatAnswerStream) -> None:
        try:
            await stream.write()
        except SurfaceGone:
            return
        except SurfaceFailed as error:
            _log.info("chat.answer.not_written", error=str(error))
            if error.retryable:
                self._is_due(stream)
        except Exception:  # noqa: BLE001 - a bug in one answer must not end the growth of all
            _log.exception("chat.answer.failed")
