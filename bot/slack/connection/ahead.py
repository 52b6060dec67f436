"""Messages are taken in ahead of everything else: on the loop they arrive at, without Slack's framework.

That loop runs beside the one of the answers, in a thread of its own. What a message needs of the
other one is asked for there: whispers, denials, and stops.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog
from slack_bolt.async_app import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.domain.ids import TeamId, TurnId, UserId
from bot.ports.durability import StopRequests
from bot.ports.failures import StorageUnavailable
from bot.ports.loops import OtherLoop
from bot.slack.connection.delivered import is_message, parsed, retry_number
from bot.slack.connection.teams import Dispatches, addressed_team
from bot.slack.handling.ingress_ports import DenialWriter, ErrandRunner
from bot.slack.received.payloads import MessageEnvelope, SessionStopped

_log = structlog.stdlib.get_logger(__name__)


class Messages(Protocol):
    """Takes in what people write: `bot.slack.handling.message_intake`."""

    async def take(self, envelope: MessageEnvelope, retry: int) -> None:
        """Raises StorageUnavailable or TimeoutError when it must be delivered again."""
        ...

    async def stopped(self, envelope: SessionStopped) -> None:
        """Slack's own stop button."""
        ...


# Of a workspace that is open here; None where that has to be asked. Called on any thread.
MessagesOf = Callable[[TeamId], Messages | None]


class Ahead:
    """`Dispatches` for the loop of the messages; everything else is `rest`'s, `at_home`."""

    def __init__(
        self,
        messages_of: MessagesOf,
        rest: Dispatches,
        at_home: OtherLoop,
        timeout_s: float,
        acknowledged: Callable[[float], None],
    ) -> None:
        self._messages_of = messages_of
        self._rest = rest
        self._at_home = at_home
        self._timeout_s = timeout_s
        self._acknowledged = acknowledged

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """200 once it is durable, 500 when it has to be delivered again; others' as Bolt answers."""
        messages = None
        if is_message(req.body):
            messages = self._messages_of(TeamId(addressed_team(req.body)))
        if messages is None:
            return await self._at_home.run(self._rest.async_dispatch(req))
        begun = time.monotonic()
        try:
            return await self._taken(messages, req)
        finally:
            self._acknowledged(time.monotonic() - begun)

    async def _taken(self, messages: Messages, req: AsyncBoltRequest) -> BoltResponse:
        try:
            if (envelope := parsed(MessageEnvelope, req.body)) is not None:
                async with asyncio.timeout(self._timeout_s):
                    await messages.take(envelope, retry_number(req))
        except (StorageUnavailable, TimeoutError) as error:
            _log.warning("slack.listener.not_done", error=type(error).__name__)
            return BoltResponse(status=500)
        except Exception as error:  # noqa: BLE001 - as a listener's: Slack delivers it again
            _log.error("slack.listener.failed", exc_info=error)
            return BoltResponse(status=500)
        return BoltResponse(status=200)


@dataclass(frozen=True, slots=True)
class MessagesThere:
    """Those of the other loop, for whoever hears of a message at home."""

    loop: OtherLoop
    messages: Messages

    async def take(self, envelope: MessageEnvelope, retry: int) -> None:
        """See `Messages`."""
        await self.loop.run(self.messages.take(envelope, retry))

    async def stopped(self, envelope: SessionStopped) -> None:
        """See `Messages`."""
        await self.loop.run(self.messages.stopped(envelope))


@dataclass(frozen=True, slots=True)
class AtHome:
    """What messages ask of the loop of the answers: errands, denials, stops."""

    loop: OtherLoop
    errands: ErrandRunner
    denials: DenialWriter
    stops: StopRequests

    def run(self, name: str, job: Coroutine[object, object, None]) -> None:
        """See `Errands`."""
        self.loop.soon(partial(self.errands.run, name, job))

    async def write(self, user: str, why: str, about: Mapping[str, str], delivery: str) -> None:
        """See `Denials`."""
        await self.loop.run(self.denials.write(user, why, about, delivery))

    async def request(self, turn: TurnId, by: UserId) -> bool:
        """See `StopRequests`."""
        return await self.loop.run(self.stops.request(turn, by))
