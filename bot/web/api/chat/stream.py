"""One live answer in a conversation's log: text gathered between two writes, the end always."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from bot.domain.chats import ChatSession, NewChatEvent
from bot.domain.turn_events import (
    Notice,
    ProposalRaised,
    RoundReplaced,
    RoundStarted,
    TextDelta,
    ToolProgress,
    TurnEvent,
    TurnFinished,
)
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import OnPart, no_part
from bot.privacy.redactor import showable
from bot.store.chats import StoredChats
from bot.store.columns import clean
from bot.web.api.chat import wire
from tools.redactor import RedactionFailed

# Above, an answer is redacted beside the loop: that much takes about a millisecond.
_LONG_CHARS: Final = 16_384


@dataclass(frozen=True, slots=True)
class ChatServices:
    """The shared parts of all answers of this process. `redact` may raise RedactionFailed."""

    chats: StoredChats
    redact: Callable[[ChatSession, str], str]
    products_of: Callable[[str], Sequence[str]]
    notify: Callable[[str], None]


class ChatAnswerStream:
    """`bot.ports.platform.AnswerStream`. `due` is called when there is text to write."""

    def __init__(
        self,
        services: ChatServices,
        session: Callable[[], Awaitable[ChatSession]],
        message: str,
        writer: str,
        due: Callable[["ChatAnswerStream"], None],
    ) -> None:
        self._services = services
        self._session = session
        self._message = message
        self._writer = writer
        self._due = due
        self._pieces: list[str] = []
        self._round_start = 0
        self._steps: list[NewChatEvent] = []
        self._told: set[tuple[str, str]] = set()
        self._sent: str | None = ""  # None: the sent text is unknown, so it is sent again
        self._is_mine = False
        self._is_left = False
        self._lock = asyncio.Lock()

    def feed(self, event: TurnEvent) -> None:
        """Fold it in; written soon."""
        match event:
            case TextDelta():
                self._pieces.append(event.text)
            case RoundStarted():
                if self._pieces and self._pieces[-1] != "\n\n":
                    self._pieces.append("\n\n")
                self._round_start = len(self._pieces)
                return
            case RoundReplaced():
                del self._pieces[self._round_start :]
            case ToolProgress() | Notice():
                self._steps.append(wire.progress(self._message, event))
            case ProposalRaised() | TurnFinished():
                return  # its card shows it; its end is delivered
            case _:
                assert_never(event)
        self._due(self)

    async def write(self) -> None:
        """What has come since the last time. Raises SurfaceFailed, SurfaceGone."""
        async with self._lock:
            if not self._is_left:
                await self._write(await self._session(), ())

    async def finish(
        self,
        final: TurnFinished,
        on_part: OnPart = no_part,  # noqa: ARG002 - it is one message
    ) -> None:
        """The end of the answer, on record when it returns. Raises SurfaceGone, SurfaceFailed."""
        async with self._lock:
            session = await self._session()
            products = self._services.products_of(session.channel)
            # The end has the whole text, so unwritten text need not be written.
            await self._write(session, wire.ending(self._message, final, products))
            self._is_left = True  # a pending write would add a part of the text after its end

    async def aclose(self) -> None:
        """Write no more: another process may own the answer now."""
        self._is_left = True
        async with self._lock:  # a write under way ends before
            pass

    async def _write(self, session: ChatSession, end: Sequence[NewChatEvent]) -> None:
        try:
            await self._take(session)
            if self._is_left and not end:
                return
            steps = [each for each in self._steps if (each.kind, each.data) not in self._told]
            shown = None if end else await self._shown(session)
            text = () if shown is None else self._text(shown)
            events = [*steps, *text, *end]
            if not events:
                return
            self._sent = None  # whether it arrives is not known from here on
            if not await self._services.chats.tell(session.id, self._message, self._writer, events):
                self._is_left = True
                raise SurfaceGone("another replica reports this answer")
        except StorageUnavailable as error:
            self._is_mine = False  # what did arrive is asked for
            raise SurfaceFailed(str(error), retryable=True) from error
        except RedactionFailed as error:
            raise SurfaceFailed("could not be redacted", retryable=False) from error
        self._sent = shown
        self._told.update((each.kind, each.data) for each in steps)
        self._steps = [each for each in self._steps if (each.kind, each.data) not in self._told]
        self._services.notify(session.id)

    def _text(self, shown: str) -> Sequence[NewChatEvent]:
        if shown == self._sent:
            return ()
        if self._sent is not None and shown.startswith(self._sent):
            return (wire.text(self._message, shown[len(self._sent) :]),)
        return (wire.reset(self._message, shown),)

    async def _shown(self, session: ChatSession) -> str:
        said = clean(showable("".join(self._pieces)))
        if len(said) > _LONG_CHARS:
            return await asyncio.to_thread(self._services.redact, session, said)
        return self._services.redact(session, said)

    async def _take(self, session: ChatSession) -> None:
        if self._is_mine:
            return
        taken = await self._services.chats.take(session.id, self._message, self._writer)
        if taken is None:
            raise SurfaceGone("there is no such question")
        self._is_mine = True
        self._is_left = self._is_left or taken.has_ended
        self._told = set(taken.told)
        self._sent = None if taken.has_text else ""
