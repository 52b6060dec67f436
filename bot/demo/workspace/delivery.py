"""Getting payloads to the app: once for what a person waits on, with retries for events."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from bot.demo.workspace.json_access import JsonObject

EnvelopeKind = Literal["events_api", "interactive", "slash_commands"]


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """Times in seconds, https://docs.slack.dev/apis/events-api/ ("Retries"): an answer within 3 s,
    then again at once, after a minute and after five."""

    ack_timeout_s: float = 3.0
    retry_delays_s: tuple[float, ...] = (0.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class Envelope:
    """One payload on its way. `attempt` counts the retries."""

    kind: EnvelopeKind
    payload: JsonObject
    attempt: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ack:
    """What came back. `body` is a response payload, such as a view's errors."""

    ok: bool
    body: JsonObject | None = None
    reason: str = ""
    may_retry: bool = True


class Transport(Protocol):
    """A way to the app. Never raises: a failure is an Ack that is not ok."""

    async def send(self, envelope: Envelope, timeout_s: float) -> Ack: ...


class EventQueue:
    """Events wait here for `run`; interactions go straight through."""

    def __init__(
        self, policy: DeliveryPolicy, transport: Transport, notify: Callable[[], None]
    ) -> None:
        self.policy = policy
        self.transport = transport
        self.undelivered: list[JsonObject] = []
        self._notify = notify
        self._queue: asyncio.Queue[JsonObject] = asyncio.Queue()
        self._in_flight = 0

    @property
    def idle(self) -> bool:
        return self._queue.empty() and self._in_flight == 0

    def post_event(self, payload: JsonObject) -> None:
        """Deliver in the background, in the order posted, with retries."""
        self._queue.put_nowait(payload)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as deliveries:
            while True:
                payload = await self._queue.get()
                self._in_flight += 1
                deliveries.create_task(self._deliver(payload))

    async def request(self, kind: EnvelopeKind, payload: JsonObject) -> Ack:
        return await self.transport.send(Envelope(kind, payload), self.policy.ack_timeout_s)

    async def _deliver(self, payload: JsonObject) -> None:
        try:
            if not await self._try_all(payload):
                self.undelivered.append(payload)
        finally:
            self._in_flight -= 1
            self._notify()

    async def _try_all(self, payload: JsonObject) -> bool:
        reason = ""
        for attempt, delay_s in enumerate((0.0, *self.policy.retry_delays_s)):
            await asyncio.sleep(delay_s)
            envelope = Envelope("events_api", payload, attempt, reason)
            ack = await self.transport.send(envelope, self.policy.ack_timeout_s)
            if ack.ok:
                return True
            if not ack.may_retry:
                return False
            reason = ack.reason
        return False
