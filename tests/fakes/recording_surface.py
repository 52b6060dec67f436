"""A chat surface that remembers every event and every end of every answer."""

from dataclasses import dataclass, field

from bot.domain.ids import MessageTs, TurnId
from bot.domain.session import Ask
from bot.domain.turn_events import TurnEvent, TurnFinished
from bot.ports.platform import OnPart, no_part


@dataclass
class RecordedStream:
    """One live answer. `failure` is raised by `finish`."""

    failure: Exception | None = None
    events: list[TurnEvent] = field(default_factory=list)
    finals: list[TurnFinished] = field(default_factory=list)
    closed: int = 0

    def feed(self, event: TurnEvent) -> None:
        self.events.append(event)

    async def finish(self, final: TurnFinished, on_part: OnPart = no_part) -> None:
        if self.failure is not None:
            raise self.failure
        self.finals.append(final)

    async def aclose(self) -> None:
        self.closed += 1


@dataclass
class RecordingSurface:
    """`open_failures` are raised first, one a call; `finish_failure` by every answer's end."""

    open_failures: list[Exception] = field(default_factory=list)
    finish_failure: Exception | None = None
    asks: list[Ask] = field(default_factory=list)
    placeholders: dict[TurnId, MessageTs] = field(default_factory=dict)
    streams: list[RecordedStream] = field(default_factory=list)

    @property
    def finals(self) -> list[TurnFinished]:
        """Every end that people saw."""
        return [final for stream in self.streams for final in stream.finals]

    async def open_answer(self, ask: Ask) -> MessageTs:
        self.asks.append(ask)
        if self.open_failures:
            raise self.open_failures.pop(0)
        fresh = MessageTs(f"1700000099.{len(self.placeholders):06}")
        return self.placeholders.setdefault(ask.turn_id, fresh)

    def stream(self, ask: Ask, ts: MessageTs) -> RecordedStream:
        self.asks.append(ask)
        self.streams.append(RecordedStream(self.finish_failure))
        return self.streams[-1]
