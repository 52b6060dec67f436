"""`bot.ports.platform.CardSurface` that remembers cards, lines and private messages."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.chart import Chart
from bot.domain.ids import MessageTs, Place, ProposalId, UserId
from bot.domain.proposal import Proposal
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.platform import PlatformTraits

TRAITS = PlatformTraits(
    name="wall",
    card_chars=2_900,
    preview_chars=2_500,
    message_chars=12_000,
    edits_per_minute=38.0,
    private_messages=True,
    forms=True,
)


@dataclass
class CardWall:
    """`failures` are raised first, one a call. `gate` holds a card that is about to be written."""

    failures: list[Exception] = field(default_factory=list)
    cards: dict[ProposalId, list[Proposal]] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    charts: dict[str, Sequence[Chart]] = field(default_factory=dict)
    whispers: list[tuple[UserId, str]] = field(default_factory=list)
    traits: PlatformTraits = TRAITS
    gate: asyncio.Event | None = None
    at_gate: asyncio.Event = field(default_factory=asyncio.Event)

    def shown(self, proposal_id: ProposalId) -> Proposal:
        """What the card says now."""
        return self.cards[proposal_id][-1]

    async def show_card(self, proposal: Proposal) -> MessageTs:
        self._fail()
        if self.gate is not None:
            gate, self.gate = self.gate, None
            self.at_gate.set()
            await gate.wait()
        self.cards.setdefault(proposal.id, []).append(proposal)
        return MessageTs(f"1700000000.{list(self.cards).index(proposal.id):06}")

    async def whisper(
        self, place: Place, user: UserId, text: str, charts: Sequence[Chart] = ()
    ) -> None:
        self._fail()
        self.whispers.append((user, text))

    async def say(
        self, place: Place, text: str, key: str, charts: Sequence[Chart] = ()
    ) -> MessageTs:
        self._fail()
        self.lines.setdefault(key, text)
        self.charts.setdefault(key, charts)
        return MessageTs(f"1700000001.{list(self.lines).index(key):06}")

    def words(self) -> Sequence[str]:
        """Every line of the thread."""
        return list(self.lines.values())

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


@dataclass
class FlakyWall(CardWall):
    """Of its cards a third is refused, in one way or another, or written without an answer."""

    seed: int = 0
    is_flaky: bool = True
    unanswered: int = 0

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    async def show_card(self, proposal: Proposal) -> MessageTs:
        throw = self._dice.randrange(12) if self.is_flaky else 12
        if throw < len(_REFUSALS):
            raise _REFUSALS[throw]
        ts = await super().show_card(proposal)
        if throw == len(_REFUSALS):
            self.unanswered += 1
            raise SurfaceFailed("no answer", retryable=True)
        return ts


_REFUSALS = (
    SurfaceGone("not_in_channel"),
    SurfaceFailed("ratelimited", retryable=True),
    SurfaceFailed("invalid_auth", retryable=False),
)
