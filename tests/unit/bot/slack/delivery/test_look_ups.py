"""Look-ups of channels and people stay within Slack's limits and delay only what needs them."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.domain.channel import UNKNOWN
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.slack.api.channels import Channels, SlackChannelNames
from bot.slack.api.users import PersonNames
from bot.slack.api.web_api import RateLimited
from bot.slack.delivery.pacing import Rates
from bot.slack.delivery.scheduler import EditScheduler, LookupCalls
from bot.slack.roles.directory import CANNOT_CHECK, RoleMembers, SlackRoleDirectory
from tests.fakes.channel_names import MemoryNames

TIER_3 = 50  # https://docs.slack.dev/reference/methods/conversations.info
TIER_4 = 100  # https://docs.slack.dev/reference/methods/users.info


class Slack:
    """Answers at once, and remembers when it was asked for what."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[tuple[float, str]] = []
        self.refuses: RateLimited | None = None
        self.scheduler = EditScheduler(Rates(), lambda: self.now)
        self.calls = LookupCalls(self, self.scheduler)

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        self.asked.append((self.now, method))
        if self.refuses is not None:
            raise self.refuses
        return {
            "channel": {"id": arguments.get("channel"), "name": "incident-checkout"},
            "user": {
                "id": arguments.get("user"),
                "team_id": "T1",
                "name": "Ana",
                "tz": "Asia/Tokyo",
            },
        }

    @property
    def busiest_minute(self) -> int:
        times = [at for at, _ in self.asked]
        return max(sum(start <= at < start + 60 for at in times) for start in times)


def place(number: int) -> Place:
    return Place(TeamId("T1"), ChannelId(f"C{number}"), MessageTs("1.1"))


async def test_fifty_new_channels_at_once_stay_within_the_limit() -> None:
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


async def test_a_cached_name_needs_no_lookup() -> None:
    slack, store = Slack(), MemoryNames()
    names = SlackChannelNames(Channels(slack.calls, lambda: slack.now), store)
    await names.for_asking(place(0))
    while not slack.scheduler.take_look_up("conversations.info"):
        pass

    assert await names.for_asking(place(0)) == "incident-checkout"
    assert len(slack.asked) == 1


@pytest.mark.parametrize(
    ("method", "other"),
    [("conversations.info", "users.info"), ("users.info", "conversations.info")],
)
async def test_slacks_own_rate_limit_is_waited_for(method: str, other: str) -> None:
    slack = Slack()
    slack.refuses = RateLimited(method, 20.0)
    with pytest.raises(RateLimited):
        await slack.calls.call(method, channel="C1")
    slack.refuses = None

    with pytest.raises(RateLimited) as held:
        await slack.calls.call(method, channel="C1")
    await slack.calls.call(other, user="U1")
    slack.now += 20.0
    await slack.calls.call(method, channel="C1")

    assert held.value.retry_after_s == 20.0
    assert [asked for _, asked in slack.asked] == [method, other, method]


async def test_a_crowd_of_askers_leaves_room_for_a_press_lookup() -> None:
    slack = Slack()
    names = PersonNames(
        LookupCalls(slack, slack.scheduler, Rates().person_reserve), lambda: slack.now
    )
    on_call = [f"U9{n:02}" for n in range(TIER_4)]
    responder = {"responder": RoleMembers(users=tuple(on_call))}
    roles = SlackRoleDirectory(slack.calls, TeamId("T1"), responder, lambda: slack.now)

    async def press(user: str) -> str | None:
        return await roles.refusal(Person(TeamId("T1"), UserId(user)), ["responder"])

    zones = [await names.zone(Person(TeamId("T1"), UserId(f"U{n}"))) for n in range(1, 501)]
    pressed = [await press(user) for user in on_call]

    assert zones.count("Asia/Tokyo") == Rates().person_burst - Rates().person_reserve
    assert zones.count("") == len(zones) - zones.count("Asia/Tokyo")
    assert pressed.count(None) == Rates().person_reserve
    assert pressed.count(CANNOT_CHECK) == TIER_4 - Rates().person_reserve
    assert slack.busiest_minute <= TIER_4


async def test_a_person_skipped_in_a_crowd_is_looked_up_at_their_next_question() -> None:
    slack = Slack()
    names = PersonNames(
        LookupCalls(slack, slack.scheduler, Rates().person_reserve), lambda: slack.now
    )
    crowd = [f"U{n}" for n in range(100)]
    first = [await names.name(user) for user in crowd]
    slack.now += 60.0

    assert first[-1] == "U99"
    assert await names.name("U99") == "Ana"


@given(
    st.sampled_from([("conversations.info", 48), ("users.info", 95)]),
    st.lists(st.tuples(st.floats(0, 5), st.sampled_from([0, 20])), max_size=300),
)
def test_no_minute_has_too_many_lookups(
    look_up: tuple[str, int], asked: list[tuple[float, int]]
) -> None:
    slack, taken = Slack(), list[float]()
    for pause, leaves in asked:
        slack.now += pause
        taken += [] if slack.scheduler.take_look_up(look_up[0], leaves) else [slack.now]

    busiest = max((sum(at <= t < at + 60 for t in taken) for at in taken), default=0)
    assert busiest <= look_up[1]
