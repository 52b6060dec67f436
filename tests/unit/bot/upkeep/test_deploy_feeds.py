"""Asking for deploys by the clock: how far back, and how often where nothing is answered."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from adapters.errors import AdapterError, NotFound, RateLimited, Refused, Unreachable
from adapters.ingested_event import IngestedEvent
from bot.ports.failures import StorageUnavailable
from bot.ports.ingested_events import FeedStates
from bot.upkeep.deploy_feeds import FIRST_LOOK, LOOK, START_S, TICK_S, FeedRound, FeedSweep
from tests.fakes.set_clock import SetClock
from tests.fakes.stores import MemoryEvents
from tools.errors import CapabilityUnavailable
from tools.outside_json import left_out

NOW = datetime(2026, 4, 7, 15, 0, tzinfo=UTC)
EVERY_S = 60.0
DEPLOY = IngestedEvent("1", "github", "deploy", "checkout", NOW, {})


class Feed:
    def __init__(self) -> None:
        self.fails: Exception | None = None
        self.unread = 0
        self.back: list[timedelta] = []

    async def since(self, at: datetime) -> Sequence[IngestedEvent]:
        self.back.append(NOW - at)
        if self.fails is not None:
            raise self.fails
        left_out(self.unread)
        return [DEPLOY]


class Sweeping:
    """A sweep of one feed on a clock that the test turns."""

    def __init__(self) -> None:
        self.feed, self.seconds = Feed(), 0.0
        events, clock = MemoryEvents(), SetClock(NOW)
        self.clock = clock
        self.states = FeedStates()
        self.sweep = FeedSweep(
            "github",
            self.feed,
            events,
            clock,
            EVERY_S,
            self.states,
            lambda: self.seconds,
        )
        self.seconds = START_S


@pytest.fixture
def sweeping() -> Sweeping:
    return Sweeping()


async def test_a_start_does_not_wait_for_other_systems(sweeping: Sweeping) -> None:
    sweeping.seconds = 0.0

    assert await sweeping.sweep.run() == 0
    assert sweeping.feed.back == []


async def test_the_first_poll_covers_a_day_and_later_ones_an_hour(
    sweeping: Sweeping,
) -> None:
    for added in (1, 0, 0):
        assert await sweeping.sweep.run() == added
        sweeping.seconds += EVERY_S
    assert sweeping.feed.back == [FIRST_LOOK, LOOK, LOOK]


async def test_feeds_are_polled_soon_after_the_start_and_then_regularly(sweeping: Sweeping) -> None:
    for _ in range(13):
        await sweeping.sweep.run()
        sweeping.seconds += TICK_S

    assert len(sweeping.feed.back) == 1 + 2  # at 1, 61 and 121 s


async def test_the_log_says_how_many_entries_of_a_feed_were_unreadable(
    sweeping: Sweeping,
) -> None:
    sweeping.feed.unread = 2
    with capture_logs() as logged:
        await sweeping.sweep.run()
    assert [(one["feed"], one["count"]) for one in logged] == [("github", 2)]


async def test_unreadable_entries_count_for_a_day(
    sweeping: Sweeping,
) -> None:
    counts = []
    for unread, hours in [(2, 0), (0, 1), (3, 2), (1, 3), (0, 20), (0, 50)]:
        sweeping.feed.unread = unread
        sweeping.clock.at = NOW + timedelta(hours=hours)
        await sweeping.sweep.run()
        counts.append(sweeping.states.unread)
        sweeping.seconds += EVERY_S

    assert counts == [2, 2, 3, 3, 3, 0]


async def test_a_failing_feed_counts_until_it_answers(sweeping: Sweeping) -> None:
    sweeping.feed.unread, failing = 1, []
    for failure in (None, Unreachable("gone"), TimeoutError(), None):
        sweeping.feed.fails = failure
        await sweeping.sweep.run()
        failing.append((sweeping.states.failing, sweeping.states.unread))
        sweeping.seconds += EVERY_S

    assert failing == [(0, 1), (1, 1), (1, 1), (0, 1)]


@pytest.mark.parametrize("hours", [-3, 2, 30])
async def test_deploys_during_a_pause_are_requested_afterwards(
    sweeping: Sweeping, hours: int
) -> None:
    await sweeping.sweep.run()
    sweeping.seconds += EVERY_S
    slept = timedelta(hours=hours)  # a long `every`, a machine that slept, a clock that was set
    sweeping.clock.at = NOW + slept

    await sweeping.sweep.run()

    assert sweeping.feed.back == [FIRST_LOOK, LOOK - min(slept, timedelta())]


@pytest.mark.parametrize(
    ("failure", "pause_s"),
    [
        (Unreachable("gone"), 2.0),
        (CapabilityUnavailable("gone"), 2.0),
        (StorageUnavailable("gone"), 2.0),
        (TimeoutError(), 2.0),
        (RateLimited("slowly", retry_after_s=300.0), 300.0),
        (RateLimited("never", retry_after_s=1e9), 900.0),
    ],
)
async def test_a_failed_poll_is_repeated_later_and_covers_a_day(
    sweeping: Sweeping, failure: Exception, pause_s: float
) -> None:
    await sweeping.sweep.run()
    sweeping.seconds += EVERY_S
    sweeping.feed.fails = failure
    await sweeping.sweep.run()
    sweeping.feed.fails = None

    sweeping.seconds += pause_s - 0.1
    assert await sweeping.sweep.run() == 0
    assert len(sweeping.feed.back) == 2

    sweeping.seconds += 0.2
    await sweeping.sweep.run()
    assert sweeping.feed.back[2:] == [FIRST_LOOK]


async def test_pauses_grow_to_a_quarter_of_an_hour(sweeping: Sweeping) -> None:
    failure: AdapterError = Unreachable("gone")
    sweeping.feed.fails = failure
    for _ in range(200):
        sweeping.seconds += 900.0
        await sweeping.sweep.run()

    assert len(sweeping.feed.back) == 200


@pytest.mark.parametrize(
    ("failure", "asked_now", "asked_next"),
    [
        (NotFound("renamed"), [1, 1], [1, 2]),
        (Refused("not yours"), [1, 1], [1, 2]),
        (Unreachable("gone"), [1, 0], [1, 1]),
        (RateLimited("slowly", retry_after_s=300.0), [1, 0], [1, 1]),
        (Refused("too often", retry_after_s=300.0), [1, 0], [1, 1]),
    ],
)
async def test_a_failing_feed_hides_no_other_and_each_address_is_tried_once(
    failure: AdapterError, asked_now: list[int], asked_next: list[int]
) -> None:
    gone, there = Sweeping(), Sweeping()
    gone.feed.fails = failure
    both = FeedRound([gone.sweep, there.sweep])

    await both.run()
    assert [len(each.feed.back) for each in (gone, there)] == asked_now
    assert [each.states.failing for each in (gone, there)] == [1, 1 - asked_now[1]]

    gone.seconds += 1.0
    there.seconds += EVERY_S
    await both.run()
    assert [len(each.feed.back) for each in (gone, there)] == asked_next
