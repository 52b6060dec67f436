"""A whole turn in memory: real loop, rounds, budget and tools over a scripted model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.llm.messages import StreamChunk
from adapters.llm.port import Provider
from bot.chat.attachments import PictureOf, no_picture
from bot.chat.delivery import ProposalsOf, no_proposals
from bot.chat.models import Models
from bot.chat.rounds import Rounds
from bot.chat.tool_calls import Toolbox, TurnTools
from bot.chat.turn import Turns
from bot.chat.turn_budget import NO_CHOICES, Budget
from bot.chat.turn_request import TurnConfig
from bot.domain.budget import BudgetLimits
from bot.domain.channel import Channel, ChannelRule
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.roles import HeldRoles
from bot.domain.session import Ask, TurnState
from bot.domain.turn_events import TurnFinished
from bot.ports.durability import Journal
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import People, by_id
from bot.telemetry.metrics import Metrics
from tests.fakes.capabilities import FakeClock
from tests.fakes.channel_names import FakeNames
from tests.fakes.journal import MemoryJournal
from tests.fakes.recording_surface import RecordingSurface
from tests.fakes.redactor import FakeRedactor
from tests.fakes.scripted_provider import ScriptedProvider
from tests.fakes.stop_signal import FakeStops
from tests.fakes.stores import Memory, MemoryAudit, MemoryLedger, MemorySessions
from tests.fakes.tools import ALL, FakeTool, bench
from tests.fakes.undelivered import MemoryUndelivered
from tools.contract import AnyTool
from tools.policy import ToolPolicy
from tools.redactor import Redacted

PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1700000000.000100"))
ASK = Ask(
    PLACE, MessageTs("1700000000.000100"), Person(TeamId("T1"), UserId("U1")), Redacted("why?")
)
LATER = replace(ASK, ts=MessageTs("1700000001.000100"), text=Redacted("and now?"))


@dataclass
class Outage:
    """A store; some of its methods find no database."""

    inner: Any
    broken: set[str] = field(default_factory=set)
    error: Exception = field(default_factory=lambda: StorageUnavailable("database is locked"))

    def __getattr__(self, name: str) -> Any:
        if name in self.broken:
            return self._fail
        return getattr(self.inner, name)

    async def _fail(self, *_: object, **__: object) -> None:
        raise self.error


@dataclass
class TurnBench:
    """Everything around a turn within a test's reach."""

    turns: Turns
    memory: Memory
    sessions: Outage
    ledger: Outage
    surface: RecordingSurface
    stops: FakeStops
    metrics: Metrics
    names: FakeNames
    undelivered: Outage

    @property
    def store(self) -> MemorySessions:
        """The rows, whether or not they can be reached."""
        kept: MemorySessions = self.sessions.inner
        return kept

    async def answer(self, ask: Ask = ASK, journal: Journal | None = None) -> TurnFinished | None:
        async with asyncio.timeout(10):
            return await self.turns.answer(ask, journal or MemoryJournal())

    def state(self, ask: Ask = ASK) -> TurnState:
        """What the turn's row says."""
        return self.store.turns[ask.turn_id].turn.state


def turn_bench(
    script: Sequence[Sequence[StreamChunk]] | None = None,
    *,
    providers: Sequence[Provider] = (),
    tools: Sequence[AnyTool] = (),
    limits: BudgetLimits | None = None,
    redactor: FakeRedactor | None = None,
    surface: RecordingSurface | None = None,
    max_tool_rounds: int = 3,
    notes: Any = None,
    names: FakeNames | None = None,
    rules: Sequence[ChannelRule] = (ChannelRule("*"),),
    policy: ToolPolicy = ALL,
    held: HeldRoles | None = None,
    first_look: bool = False,
    zone: str = "",
    models: Models = NO_CHOICES,
    picture_of: PictureOf = no_picture,
    people: People = by_id,
    proposals_of: ProposalsOf = no_proposals,
) -> TurnBench:
    """One scripted provider unless `providers` are given; `core__echo` unless `tools` are."""
    memory = Memory()
    metrics = Metrics()
    sessions, ledger = Outage(MemorySessions(memory)), Outage(MemoryLedger(memory))
    asked = Rounds(providers or [ScriptedProvider(script or [])])
    box = bench(tools or [FakeTool()], policy)
    stops = FakeStops()
    shown = surface or RecordingSurface()
    called = names or FakeNames()
    undelivered = Outage(MemoryUndelivered(memory.now))

    async def nothing(_: Place, _channel: Channel, _question: str) -> Sequence[str]:
        return ()

    async def roles_of(_place: Place, _: Person) -> HeldRoles:
        return held or HeldRoles()

    async def there(_: Person) -> str:
        return zone

    turns = Turns(
        config=TurnConfig(rules, max_tool_rounds, 1000, (), first_look=first_look),
        sessions=sessions,
        channels=called,
        roles_of=roles_of,
        zone_of=there,
        picture_at=lambda _place, file: picture_of(file),
        surface=shown,
        undelivered=undelivered,
        proposals_of=proposals_of,
        budget=Budget(
            asked, ledger, MemoryAudit(memory), limits or BudgetLimits(), metrics, models
        ),
        tools=TurnTools(lambda _: Toolbox(box.catalog, box.runner), FakeClock()),
        stops=stops,
        clock=FakeClock(),
        redactor=redactor or FakeRedactor(),
        notes=notes or nothing,
        people=people,
        metrics=metrics,
    )
    return TurnBench(turns, memory, sessions, ledger, shown, stops, metrics, called, undelivered)
