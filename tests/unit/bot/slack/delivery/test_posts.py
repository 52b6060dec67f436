"""Which new message goes next, on a virtual clock."""

import math
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from bot.slack.delivery.pacing import Rates, Urgency
from bot.slack.delivery.posts import PostPlanner

FINAL, FIRST, PLACEHOLDER = Urgency.FINAL, Urgency.FIRST, Urgency.PROGRESS
SLACK_BURST, SLACK_PER_MINUTE = 5, 300


@dataclass
class Workspace:
    """Messages to post over a virtual clock."""

    rates: Rates = field(default_factory=Rates)
    now: float = 0.0
    granted: list[tuple[float, int]] = field(default_factory=list)
    channels: dict[int, str] = field(default_factory=dict)
    planner: PostPlanner = field(init=False)

    def __post_init__(self) -> None:
        self.planner = PostPlanner(self.rates)

    def want(self, key: int, urgency: Urgency, channel: str = "C1") -> None:
        if key not in self.channels:
            self.planner.open(key, channel)
            self.channels[key] = channel
        self.planner.want(key, urgency, self.now)

    def advance(self, seconds: float) -> None:
        """Let time pass, granting as it does."""
        end = self.now + seconds
        while True:
            while (key := self.planner.grant(self.now)) is not None:
                self.granted.append((self.now, key))
                self.planner.finished(key, self.now)
            step = self.planner.wait_s(self.now)
            if step is None or self.now + step > end:
                break
            self.now += max(step, 1e-9)
        self.now = end

    def keys(self) -> list[int]:
        return [key for _, key in self.granted]

    def times(self, channel: str) -> list[float]:
        return [at for at, key in self.granted if self.channels[key] == channel]


def most_in(times: list[float], window_s: float) -> int:
    return max((sum(1 for t in times if s <= t < s + window_s) for s in times), default=0)


ACTS = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(Urgency),
        st.sampled_from(["C1", "C2", "C3", "C4"]),
        st.floats(0, 3),
    ),
    max_size=120,
)


@given(ACTS)
def test_no_channel_and_no_minute_exceeds_slacks_post_limits(
    acts: list[tuple[int, Urgency, str, float]],
) -> None:
    workspace = Workspace()
    for key, urgency, channel, pause in acts:
        workspace.want(key, urgency, channel)
        workspace.advance(pause)
    workspace.advance(600)

    for channel in ("C1", "C2", "C3", "C4"):
        # What arrives two seconds late counts in the later second.
        assert most_in(workspace.times(channel), 1.0 + 2.0) <= SLACK_BURST + 1
    assert most_in([at for at, _ in workspace.granted], 60.0) <= SLACK_PER_MINUTE


@given(ACTS)
def test_every_requested_post_is_granted(acts: list[tuple[int, Urgency, str, float]]) -> None:
    workspace = Workspace()
    for key, urgency, channel, pause in acts:
        workspace.want(key, urgency, channel)
        workspace.advance(pause)
    workspace.advance(600)

    assert set(workspace.keys()) == set(workspace.channels)
    assert workspace.planner.wait_s(workspace.now) is None


def test_finals_go_before_first_texts_before_placeholders() -> None:
    workspace = Workspace(Rates(post_burst=1))
    workspace.want(0, FINAL)
    workspace.advance(0)
    for key, urgency in enumerate((PLACEHOLDER, FIRST, FINAL, FIRST, FINAL), start=1):
        workspace.want(key, urgency)
    workspace.advance(10)

    assert workspace.keys() == [0, 3, 5, 2, 4, 1]


def test_a_placeholder_with_text_keeps_its_place_among_first_texts() -> None:
    workspace = Workspace(Rates(post_burst=1))
    workspace.want(0, FINAL)
    workspace.advance(0)
    for key, urgency in ((1, PLACEHOLDER), (2, PLACEHOLDER), (3, FIRST), (1, FIRST)):
        workspace.want(key, urgency)
    workspace.advance(10)

    assert workspace.keys() == [0, 1, 3, 2]


def test_a_rate_limited_channel_delays_no_other() -> None:
    workspace = Workspace()
    workspace.planner.hold(30.0, "C1")
    workspace.want(1, FINAL, "C1")
    workspace.want(2, PLACEHOLDER, "C2")
    workspace.advance(60)

    assert workspace.granted == [(0.0, 2), (30.0, 1)]


def test_a_dropped_post_is_not_waited_for() -> None:
    workspace = Workspace(Rates(post_burst=1))
    workspace.want(0, FINAL)
    workspace.advance(0)
    workspace.want(1, FINAL)
    workspace.planner.close(1)
    workspace.advance(10)

    assert (workspace.keys(), workspace.planner.wait_s(workspace.now)) == ([0], None)


def test_the_expected_wait_is_the_actual_wait() -> None:
    workspace = Workspace(Rates(post_burst=1))
    for key in range(4):
        workspace.want(key, FIRST)
    workspace.want(4, PLACEHOLDER)
    expected_s = workspace.planner.expected_s("C1", FIRST, 0.0)
    workspace.want(5, FIRST)
    workspace.advance(20)

    (waited_s,) = [at for at, key in workspace.granted if key == 5]
    assert math.isclose(expected_s, waited_s, abs_tol=1e-6)


def test_a_thousand_idle_channels_are_forgotten_and_one_just_used_is_not() -> None:
    workspace = Workspace(Rates(all_posts_burst=10_000, all_posts_per_minute=1e9))
    for key in range(1_100):
        workspace.want(key, FINAL, f"C{key}")
        workspace.advance(0.01)

    assert len(workspace.planner._channels) < 1_050
    for key in range(2_000, 2_005):
        workspace.want(key, FINAL, "C1099")
    before = len(workspace.granted)
    workspace.advance(0)
    assert len(workspace.granted) - before == workspace.rates.post_burst - 1
