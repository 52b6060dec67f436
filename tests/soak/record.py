"""The observations during a run: rounds and their times, orders, acknowledgements, acts."""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import orjson

from bot.demo.workspace.delivery import Ack, Envelope
from bot.demo.workspace.json_access import object_at
from bot.demo.workspace.socket_mode import SocketModeHub
from tests.scenario.durability.world import Asked, World

ORDER = "control POST restart before"
RoundKey = tuple[str, int]


class Rounds(Counter[RoundKey]):
    """Counts as the world does, and keeps when each was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.at: defaultdict[RoundKey, list[float]] = defaultdict(list)

    def __setitem__(self, key: RoundKey, count: int) -> None:
        super().__setitem__(key, count)
        self.at[key].append(time.time())


@dataclass(slots=True)
class Heard:
    """A transport that keeps when a message was first acknowledged, and how often it was sent."""

    hub: SocketModeHub
    at: dict[str, float] = field(default_factory=dict)
    repeats: int = 0

    async def send(self, envelope: Envelope, timeout_s: float) -> Ack:
        """To one connection."""
        ts = str(object_at(envelope.payload, "event").get("ts", ""))
        self.repeats += envelope.attempt > 0
        ack = await self.hub.send(envelope, timeout_s)
        if ack.ok and ts:
            self.at.setdefault(ts, time.time())
        return ack


@dataclass(slots=True)
class Question:
    """One that was asked. `sent` is when; `is_order`: it proposes a restart, which is confirmed."""

    name: str
    asked: Asked
    sent: float
    is_order: bool

    @property
    def final(self) -> str:
        """What its answer says."""
        return f"Answer of {self.name}."


@dataclass(slots=True)
class Record:
    """All of it."""

    world: World
    heard: Heard
    rounds: Rounds
    questions: list[Question] = field(default_factory=list)
    orders: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)  # of proposals, by state
    deeds: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    peak_s: float = 0.0

    @classmethod
    def of(cls, world: World) -> "Record":
        """From now on."""
        heard, rounds = Heard(world.workspace.sockets), Rounds()
        world.workspace.outbox.transport = heard
        world.rounds = rounds
        record = cls(world, heard, rounds)
        world.gates.hold(ORDER, record._sees, every=True)
        return record

    def _sees(self, body: bytes) -> bool:
        order = orjson.loads(body[body.index(b"{") :])
        self.orders[str(order["proposal_id"])] += 1
        return False  # it goes through
