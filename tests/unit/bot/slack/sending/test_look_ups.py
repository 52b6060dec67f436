"""Channels are looked up no more often than Slack allows, and nobody who need not wait does."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.domain.channel import UNKNOWN
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.slack.api.channels import Channels
from bot.slack.api.names import SlackChannelNames
from bot.slack.api.web_api import RateLimited
from bot.slack.sending.pacing import Rates
from bot.slack.sending.scheduler import EditScheduler, LookUps
from tests.fakes.channel_names import MemoryNames

TIER_3 = 50  # https://docs.slack.dev/reference/methods/conversations.info


class Slack:
    """Answers at once, and remembers when it was asked for what."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[tuple[float, str]] = []
        self.refuses: RateLimited | None = None
        self.scheduler = EditScheduler(Rates(), lambda: self.now)
        self.calls = LookUps(self, self.scheduler)

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        self.asked.append((self.now, method))
        if self.refuses is not None:
            raise self.refuses
        return {"channel": {"id": arguments.get("channel"), "name": "incident-checkout"}}

    @property
    def busiest_minute(self) -> int:
        times = [at for at, _ in self.asked]
        return max(sum(start <= at < start + 60 for at in times) for start in times)


def place(number: int) -> Place:
    return Place(TeamId("T1"), ChannelId(f"C{number}"), MessageTs("1.1"))


async def test_fifty_new_channels_at_once_are_not_one_call_too_many() -> None:
    slack, store = Slack(), MemoryNames()

    async def later(seconds: float) -> None:
        slack.now += seconds

    names = SlackChannelNames(Channels(slack.calls, lambda: slack.now), store, sleep=later)

    found = [await names.for_asking(place(number)) for number in range(TIER_3)]
    in_time = [await names.for_asking(place(number), 30.0) for number in range(TIER_3)]

    assert found.count("incident-checkout") == Rates().info_burst
    assert found.count(UNKNOWN) == TIER_3 - Rates().info_burst
    assert set(in_time) == {"incident-checkout"}
    assert len(slack.asked) == TIER_3
    assert slack.busiest_minute <= TIER_3


async def test_a_name_that_is_kept_is_told_without_a_look_up() -> None:
    slack, store = Slack(), MemoryNames()
    names = SlackChannelNames(Channels(slack.calls, lambda: slack.now), store)
    await names.for_asking(place(0))
    while not slack.scheduler.take_info():
        pass

    assert await names.for_asking(place(0)) == "incident-checkout"
    assert len(slack.asked) == 1


async def test_slacks_own_refusal_is_waited_for() -> None:
    slack = Slack()
    slack.refuses = RateLimited("conversations.info", 20.0)
    with pytest.raises(RateLimited):
        await slack.calls.call("conversations.info", channel="C1")
    slack.refuses = None

    with pytest.raises(RateLimited) as held:
        await slack.calls.call("conversations.info", channel="C1")
    await slack.calls.call("users.info", user="U1")
    slack.now += 20.0
    await slack.calls.call("conversations.info", channel="C1")

    assert held.value.retry_after_s == 20.0
    assert [method for _, method in slack.asked] == [
        "conversations.info", "users.info", "conversations.info",
    ]  # fmt: skip


@given(st.lists(st.floats(0, 5), max_size=300))
def test_whoever_asks_whenever_no_minute_holds_too_many(pauses: list[float]) -> None:
    slack, taken = Slack(), list[float]()
    for pause in pauses:
        slack.now += pause
        taken += [] if slack.scheduler.take_info() else [slack.now]

    assert max((sum(at <= t < at + 60 for t in taken) for at in taken), default=0) <= 48
