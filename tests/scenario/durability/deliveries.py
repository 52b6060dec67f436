"""Which replica a delivery of the local Slack reaches: a chosen one, or every one at once."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.demo.workspace.delivery import Ack, Envelope
from bot.demo.workspace.json_access import object_at
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.demo.workspace.socket_mode import SocketModeHub
from tests.fixtures_workspace import refused
from tests.scenario.durability.replica import Replica
from tests.scenario.durability.world import Asked, World


@dataclass(frozen=True, slots=True)
class ToEvery:
    """A transport that delivers each envelope over every connection at once."""

    hub: SocketModeHub

    async def send(self, envelope: Envelope, timeout_s: float) -> Ack:
        """The first answer that is not ok, else any."""
        connections = self.hub.connections
        acks = await asyncio.gather(*(self.hub.send(envelope, timeout_s) for _ in connections))
        return next((ack for ack in acks if not ack.ok), acks[0])


@dataclass(slots=True)
class Remembering:
    """A transport that can deliver again what the bot has heard."""

    hub: SocketModeHub
    heard: list[Envelope] = field(default_factory=list)

    async def send(self, envelope: Envelope, timeout_s: float) -> Ack:
        """To one connection."""
        self.heard.append(envelope)
        return await self.hub.send(envelope, timeout_s)

    async def again(self, asked: Asked) -> Sequence[Ack]:
        """That message's events, as Slack's retry."""
        mine = [
            replace(envelope, attempt=1, reason="http_timeout")
            for envelope in self.heard
            if object_at(envelope.payload, "event").get("ts") == asked.ts
        ]
        return [await self.hub.send(envelope, 3.0) for envelope in mine]


def deliver_to_every(world: World) -> None:
    """From now on every replica gets every event and click."""
    world.workspace.outbox.transport = ToEvery(world.workspace.sockets)


async def via(
    world: World, replica: Replica, act: Coroutine[Any, Any, Ack], group: asyncio.TaskGroup
) -> asyncio.Task[Ack]:
    """Begin what a person does so that it reaches that replica alone."""
    with world.only(replica):
        task = group.create_task(act)
        await asyncio.sleep(0)  # until it has chosen its connection
    return task


async def ask_via(
    world: World, replica: Replica, text: str, thread: str | None = None, user: str = RESPONDER
) -> Asked:
    """Ask; that replica alone hears it. Returns once it has acknowledged."""
    with world.only(replica):
        asked = await world.ask(text, thread, user)
        await world.workspace.settled()
    return asked


async def say_via(world: World, replica: Replica, text: str, thread: str) -> None:
    """Say something in a thread; that replica alone hears it."""
    with world.only(replica):
        await world.workspace.say(RESPONDER, CHECKOUT, text, thread)
        await world.workspace.settled()


def whispers(world: World, user: str) -> Sequence[str]:
    """The private messages of that person."""
    said = [message.text for message in world.workspace.whispers(user)]
    return [*said, *refused(world.workspace, user)]
