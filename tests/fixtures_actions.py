"""A world for the tests of proposals: stores, a wall of cards, a control plane, and processes.

A `World` outlives its processes; `World.decide` is a fresh process over the same world.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from adapters.control_plane.port import Endpoint
from bot.actions.catalog import ActionCatalog, ActionRule
from bot.actions.decide import Decide
from bot.actions.dispatch import Dispatch
from bot.actions.display import CardSweep, ProposalDisplay
from bot.actions.guards import GuardLine
from bot.actions.propose import ProposalIntake, ProposalScope
from bot.actions.target import Target, placed, rehearsed
from bot.domain.channel import Channel, ChannelRule
from bot.domain.ids import ChannelId, MessageTs, Place, ProposalId, TeamId, UserId
from bot.domain.proposal import Proposal, ProposalState
from bot.ports.proposals import Cards, Decision
from tests.fakes.card_wall import TRAITS, CardWall
from tests.fakes.cards import MemoryCards
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.journal import Crash, Fragile, Fuse, MemoryJournal
from tests.fakes.probe import FakeFreeze, FakeProbe
from tests.fakes.redactor import FakeRedactor
from tests.fakes.stores import Memory, MemoryAudit, MemoryProposals
from tests.fakes.watches import MemoryWatches
from tools.capabilities import CallContext
from tools.operation import ProposalDraft
from tools.redactor import Redacted

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1700000000.000001"))
ROLLBACK = ActionRule(
    name="rollback-deploy",
    description="Roll a product back to its previous version",
    endpoint=Endpoint(
        "https://control.example/products/{product}/rollback",
        credential_id="cp",
        status_url="https://control.example/operations",
    ),
    params_schema={"type": "object", "properties": {"version": {"type": "string"}}},
    reversible=True,
    blast_radius="one service",
)
SCALE = replace(ROLLBACK, name="scale", products=("shop-*",), rate_limit="1/1h")
HERE = Channel("incident-checkout", ChannelRule("*", confirm=("responder",)))
DRAFT = ProposalDraft(
    "rollback-deploy", "checkout", {"version": "v41"}, "errors began with v42", "one service", True
)


class MovableClock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at


async def no_sleep(_seconds: float) -> None:
    """Waiting takes no time here."""


async def name_at(_place: Place, user: UserId) -> str:
    """People are called by their id."""
    return user


def call(number: int = 1, **changes: object) -> CallContext:
    """A tool call in the one place of these tests."""
    made = CallContext(
        actor="U-asker",
        team="T1",
        channel="incident-checkout",
        session_id="s1",
        session_name="incident-checkout",
        turn_id="turn:T1:C1:1",
        tool_call_id=f"call-{number}",
        purpose="investigate",
        now=NOW,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def another(number: int) -> ProposalDraft:
    """An order of its own."""
    return replace(DRAFT, params={"version": f"v{number}"})


def confirm(row: Proposal, by: str = "U-lead", press: int = 1) -> Decision:
    """A press of Confirm."""
    return Decision(ProposalState.CONFIRMED, UserId(by), f"{row.id}:confirmed:{by}:{press}")


def reject(row: Proposal, by: str = "U-other", press: int = 1) -> Decision:
    """A press of Reject."""
    key = f"{row.id}:rejected:{by}:{press}"
    return Decision(ProposalState.REJECTED, UserId(by), key, Redacted("not now"))


class LapsingCards(Cards, Protocol):
    """Cards whose claims a test can let lapse."""

    async def lapse(self) -> None:
        """So much time passes that no claim holds any more."""
        ...


@dataclass
class World:
    """What survives a process."""

    rules: tuple[ActionRule, ...] = (ROLLBACK, SCALE)
    clock: MovableClock = field(default_factory=MovableClock)
    wall: CardWall = field(default_factory=CardWall)
    control: FakeControlPlane = field(default_factory=FakeControlPlane)
    probe: FakeProbe = field(default_factory=FakeProbe)
    freeze: FakeFreeze = field(default_factory=FakeFreeze)
    redactor: FakeRedactor = field(default_factory=FakeRedactor)
    came_into: list[ProposalState] = field(default_factory=list)
    channel: Channel = HERE

    def __post_init__(self) -> None:
        self.memory = Memory(now=self.clock.now)
        self.store = MemoryProposals(self.memory)
        self.audit = MemoryAudit(self.memory)
        self.cards: LapsingCards = MemoryCards(self.store, self.clock.now)
        self.watches = MemoryWatches(self.store, self.clock.now)

    def intake(self, place: Place = PLACE, **options: int) -> ProposalIntake:
        """The proposing side."""

        async def venue_of(_call: CallContext) -> ProposalScope:
            return ProposalScope(place, self.channel)

        store = Fragile(self.store, Fuse())
        return ProposalIntake(
            ActionCatalog(self.rules),
            store,  # type: ignore[arg-type]
            ProposalDisplay(Fragile(self.cards, Fuse()), self.wall),  # type: ignore[arg-type]
            venue_of,
            self.target(),
            self.freeze,
            self.watches,
            on_state=self.came_into.append,
            **options,
        )

    async def channel_now(self, _place: Place) -> Channel:
        """The one channel, as it is at this moment."""
        return self.channel

    def target(self) -> Target:
        """What reads targets."""
        return Target(self.probe, self.redactor, TRAITS)

    def guards(self, rules: tuple[ActionRule, ...] | None = None) -> GuardLine:
        """The guards over these rules."""
        catalog = ActionCatalog(self.rules if rules is None else rules)
        return GuardLine(
            catalog, self.store, self.audit, self.target(), self.freeze, self.channel_now
        )

    def decide(self, fuse: Fuse | None = None) -> Decide:
        """A fresh process; with a fuse, one that may die at any call."""
        burning = fuse or Fuse()
        store, audit = Fragile(self.store, burning), Fragile(self.audit, burning)
        wall, control = Fragile(self.wall, burning), Fragile(self.control, burning)
        catalog = ActionCatalog(self.rules)
        cards = Fragile(self.cards, burning)
        display = ProposalDisplay(cards, wall, sleep=no_sleep)  # type: ignore[arg-type]
        target = Target(Fragile(self.probe, burning), self.redactor, TRAITS)  # type: ignore[arg-type]
        guards = GuardLine(
            catalog,
            store,  # type: ignore[arg-type]
            audit,  # type: ignore[arg-type]
            target,
            self.freeze,
            self.channel_now,
        )
        dispatch = Dispatch(
            catalog,
            store,  # type: ignore[arg-type]
            control,  # type: ignore[arg-type]
            guards,
            self.redactor,
            Fragile(self.watches, burning),  # type: ignore[arg-type]
            sleep=no_sleep,
            on_state=self.came_into.append,
        )

        async def rehearse(row: Proposal) -> Proposal:
            row = placed(row, await self.channel_now(row.place))
            return await rehearsed(target, catalog.find(row.action, row.product), row)

        return Decide(
            store,  # type: ignore[arg-type]
            audit,  # type: ignore[arg-type]
            display,
            dispatch,
            name_at,
            rehearse,
            watches=self.watches,
            on_state=self.came_into.append,
        )

    async def proposed(
        self, draft: ProposalDraft = DRAFT, number: int = 1, place: Place = PLACE
    ) -> Proposal:
        """A stored proposal with its card."""
        receipt = await self.intake(place, max_open=50).propose(draft, call(number))
        return self.row(receipt.proposal_id)

    def row(self, proposal_id: str) -> Proposal:
        """The row now."""
        return self.store.rows[ProposalId(proposal_id)]

    async def carry(self, row: Proposal, decision: Decision, *fuses: Fuse) -> MemoryJournal:
        """Run the decision to its end, through a crash for every fuse that burns."""
        journal = MemoryJournal()
        for fuse in (*fuses, Fuse()):
            journal = journal.resumed(fuse)
            try:
                await self.decide(fuse).run(row.id, decision, journal)
            except Crash:
                continue
        return journal

    async def quiet(self) -> None:
        """Let claims of the dead lapse, and the clock sweep until nothing is left to paint."""
        await self.cards.lapse()
        sweep = CardSweep(self.cards, ProposalDisplay(self.cards, self.wall, sleep=no_sleep))
        while await sweep.run():
            pass

    def later(self, **delta: float) -> None:
        """Let time pass."""
        self.clock.at += timedelta(**delta)
