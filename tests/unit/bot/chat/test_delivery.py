"""Undelivered answers: delivered later, up to an hour, then recorded and reported."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from bot.chat.delivery import GIVE_UP_S, TELL_S, Delivery, Redelivery, no_proposals
from bot.domain.audit import AuditKind
from bot.domain.ids import TeamId
from bot.domain.session import Ask
from bot.ports.failures import SurfaceFailed, SurfaceGone
from tests.fakes.recording_surface import RecordingSurface
from tests.fakes.stores import Memory, MemoryAudit, MemorySessions
from tests.fakes.undelivered import MemoryUndelivered
from tests.fixtures_turn import ASK
from tests.golden.slack_views import finished

REFUSED = SurfaceFailed("invalid_auth", retryable=False)


@dataclass
class Kept:
    """One answer that was held back, and everything around it."""

    is_open: bool = True
    admins: int = 1
    told: list[str] = field(default_factory=list)
    at: datetime = datetime(2026, 11, 22, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.memory = Memory()
        self.surface = RecordingSurface()
        self.held = MemoryUndelivered(lambda: self.at)

    async def tell(self, _team: TeamId, text: str) -> int:
        self.told.append(text)
        return self.admins

    async def run(self) -> int:
        sessions, audit = MemorySessions(self.memory), MemoryAudit(self.memory)
        delivery = Delivery(self.surface, sessions, self.held, no_proposals)
        return await Redelivery(delivery, audit, self.tell, lambda: self.is_open).run()


@pytest.fixture
async def kept() -> Kept:
    kept = Kept()
    ask: Ask = ASK
    await kept.held.keep(ask, finished(text="found"))
    return kept


async def test_nothing_is_tried_during_a_platform_outage(kept: Kept) -> None:
    kept.is_open = False

    assert await kept.run() == 0
    assert kept.surface.asks == []
    assert kept.held.rows


async def test_an_undelivered_answer_is_delivered_once_as_soon_as_possible(kept: Kept) -> None:
    kept.surface.finish_failure = REFUSED
    assert await kept.run() == 0

    kept.surface.finish_failure = None
    assert [await kept.run(), await kept.run()] == [1, 0]

    assert [shown.text for shown in kept.surface.finals] == ["found"]
    assert [stream.closed for stream in kept.surface.streams] == [1, 1]


async def test_an_answer_whose_channel_is_gone_is_settled_silently(kept: Kept) -> None:
    kept.surface.finish_failure = SurfaceGone("channel_not_found")

    await kept.run()

    assert kept.held.rows == {}
    assert kept.told == []


async def test_after_an_hour_the_answer_is_audited_and_admins_get_a_notice(
    kept: Kept,
) -> None:
    kept.is_open = False
    kept.at += timedelta(seconds=GIVE_UP_S + 1)
    await kept.run()
    await kept.run()
    assert kept.memory.kinds() == [AuditKind.ANSWER_UNDELIVERED]
    assert kept.told == []

    kept.is_open = True
    await kept.run()
    await kept.run()

    assert len(kept.told) == 1
    assert kept.surface.finals == []
    assert kept.memory.kinds() == [AuditKind.ANSWER_UNDELIVERED]


async def test_unreachable_admins_are_not_retried_forever(kept: Kept) -> None:
    kept.admins = 0
    kept.at += timedelta(seconds=GIVE_UP_S + 1)
    await kept.run()
    assert kept.held.rows

    kept.at += timedelta(seconds=TELL_S)
    await kept.run()

    assert kept.held.rows == {}
