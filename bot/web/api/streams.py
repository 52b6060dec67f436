"""Event streams: a conversation's log as `text/event-stream`, from any number on, on any replica.

A reader that is slow or gone holds up nothing but its own request.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import orjson
import structlog
from aiohttp import ClientConnectionError, web
from pydantic import JsonValue

from bot.domain.callers import Caller
from bot.domain.chats import ChatEvent, ChatEventKind, ChatSession
from bot.domain.ids import Person
from bot.ports.failures import StorageUnavailable
from bot.privacy.session_memory import Placeholders
from bot.store.chats import StoredChats
from bot.web.api.callers import CallerAuthenticator, Denied
from bot.web.api.chat import wire
from bot.web.api.chat.notifier import ChatNotifier

_log = structlog.stdlib.get_logger(__name__)

PAGE: Final = 200
POLL_S: Final = 1.0  # for events of other replicas
HEARTBEAT_S: Final = 15.0  # under the 30 s and 60 s after which proxies close silent connections
CHECK_S: Final = 5.0  # whether the token still holds, and whether anybody still answers
WRITE_S: Final = 30.0  # a reader that takes nothing for so long is let go, and may come back
MOST_STREAMS: Final = 128  # of all callers, of the 256 connections there are
KEEP_ALIVE: Final = b": still here\n\n"
NOT_KEPT: Final = "The end of this answer is no longer here; read the conversation again."


@dataclass(slots=True)
class OpenStreams:
    """How many are read now, by caller. `closing` ends them all."""

    per_caller: int
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    _open: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def one(self, key: str) -> Iterator[None]:
        """One more. Raises Denied when there are too many."""
        own = self._open.get(key, 0)
        if own >= self.per_caller or sum(self._open.values()) >= MOST_STREAMS:
            raise Denied(429, "too_many_streams", "Close a stream first, or try later.", 5)
        self._open[key] = own + 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]


@dataclass(frozen=True, slots=True)
class Reader:
    """Who follows, and whether they still may: roles end, also in the middle of a stream."""

    caller: Caller
    may: Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Streams:
    chats: StoredChats
    notifier: ChatNotifier
    placeholders: Placeholders
    authenticator: CallerAuthenticator
    open: OpenStreams

    async def serve(
        self, request: web.Request, reader: Reader, session: ChatSession, message: str = ""
    ) -> web.StreamResponse:
        """From `Last-Event-ID` on; of one question until its end. Raises Denied before it begins.

        The caller holds one of `open`.
        """
        after = last_event_id(request)
        with self.notifier.subscribe(session.id) as more:
            response = web.StreamResponse(
                headers={
                    "Content-Type": "text/event-stream",
                    "Cache-Control": "no-store",
                    "X-Accel-Buffering": "no",  # nginx would gather it
                }
            )
            await response.prepare(request)
            reading = _Reading(self, request, response, reader, session, message, after, more)
            try:
                await reading.run()
            except (ClientConnectionError, ConnectionError, TimeoutError):
                if request.transport is not None:
                    request.transport.abort()  # closing would wait for data that the client does not take
                _log.debug("api.stream.disconnected", session=session.id)
            return response

    async def answer(
        self, session: ChatSession, reader: Person, message: str
    ) -> AsyncIterator[ChatEvent]:
        """The events of one answer until its end, or until no replica answers it any more."""
        after, silent_s = 0, 0.0
        with self.notifier.subscribe(session.id) as more:
            while not self.open.closing.is_set():
                more.clear()
                page: Sequence[ChatEvent] = ()
                with suppress(StorageUnavailable):  # the log is there when the database is
                    page = await self.chats.after(session.id, after, reader, PAGE, message)
                for event in page:
                    yield event
                    after, silent_s = event.seq, 0.0
                    if event.kind is ChatEventKind.DONE:
                        return
                if not page:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(POLL_S):
                            await more.wait()
                    silent_s += POLL_S
                if silent_s >= CHECK_S and not await self._is_at_work(session, message):
                    return

    async def _is_at_work(self, session: ChatSession, message: str) -> bool:
        try:
            return await self.chats.is_at_work(session, message)
        except StorageUnavailable:
            return True  # asked again soon

    def line(self, event: ChatEvent, session: ChatSession) -> bytes:
        """As it goes over the wire, with identifiers as people may read them."""
        data = orjson.dumps(self.shown(event, session))
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.kind.value.encode(), data)

    def shown(self, event: ChatEvent, session: ChatSession) -> JsonValue:
        """An event's data, with the placeholders that this process can resolve."""

        def resolved(value: JsonValue) -> JsonValue:
            match value:
                case str():
                    return self.placeholders.resolved(value, session.place.key)
                case list():
                    return [resolved(each) for each in value]
                case dict():
                    return {name: resolved(each) for name, each in value.items()}
                case _:
                    return value

        return resolved(orjson.loads(event.data))


@dataclass(slots=True)
class _Reading:
    streams: Streams
    request: web.Request
    response: web.StreamResponse
    reader: Reader
    session: ChatSession
    message: str
    after: int
    more: asyncio.Event
    silent_s: float = 0.0
    unchecked_s: float = 0.0

    async def run(self) -> None:
        while not self.streams.open.closing.is_set():
            self.more.clear()
            try:
                page = await self._page()
                if await self._tell(page) or (not page and not await self._still()):
                    return
            except StorageUnavailable:
                page = ()  # the log is there when the database is
            if not page:
                await self._wait()

    async def _page(self) -> "list[ChatEvent] | tuple[()]":
        message = self.message or None
        return list(
            await self.streams.chats.after(
                self.session.id, self.after, self.reader.caller.person, PAGE, message
            )
        )

    async def _tell(self, page: "list[ChatEvent] | tuple[()]") -> bool:
        for event in page:
            await self._write(self.streams.line(event, self.session))
            self.after = event.seq
            if self.message and event.kind is ChatEventKind.DONE:
                return True
        return False

    async def _still(self) -> bool:
        if self.silent_s >= HEARTBEAT_S:
            await self._write(KEEP_ALIVE)
        if self.unchecked_s < CHECK_S:
            return True
        self.unchecked_s = 0.0
        try:
            await self.streams.authenticator.reauthenticate(self.request)
        except Denied as denied:
            return denied.status == 503
        if not await self.reader.may():
            return False
        if not self.message or await self.streams.chats.is_at_work(self.session, self.message):
            return True
        if await self._page():
            return True  # it ended just now
        gone = wire.notice(self.message, NOT_KEPT)
        await self._write(b"event: notice\ndata: %s\n\n" % gone.data.encode())
        return False

    async def _write(self, data: bytes) -> None:
        async with asyncio.timeout(WRITE_S):
            await self.response.write(data)
        self.silent_s = 0.0

    async def _wait(self) -> None:
        waits = [
            asyncio.ensure_future(self.more.wait()),  # noqa: TID251 - ended below
            asyncio.ensure_future(self.streams.open.closing.wait()),  # noqa: TID251 - ended below
        ]
        try:
            await asyncio.wait(waits, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        self.silent_s += POLL_S
        self.unchecked_s += POLL_S


def last_event_id(request: web.Request) -> int:
    """The reader's last position. Raises Denied for an invalid number."""
    given = request.headers.get("Last-Event-ID", "").strip()
    if not given:
        return 0
    if len(given) > 18 or not (given.isascii() and given.isdigit()):
        raise Denied(400, "invalid", "Last-Event-ID: the `id` of an event of this session.")
    return int(given)
