"""The edit scheduler's decisions, on a virtual clock."""

import math
from dataclasses import asdict, dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.slack.delivery.pacing import EditPlanner, Rates, Urgency

SLACK_PER_MINUTE = 50
# Each burst, its refill, and how often the refill comes in a minute.
ALLOWANCES = (
    ("edit_burst", "edits_per_minute", 1),
    ("post_burst", "posts_per_s", 60),
    ("all_posts_burst", "all_posts_per_minute", 1),
    ("read_burst", "reads_per_minute", 1),
    ("info_burst", "infos_per_minute", 1),
    ("person_burst", "persons_per_minute", 1),
    ("append_burst", "appends_per_minute", 1),
    ("stream_burst", "streams_per_minute", 1),
    ("session_burst", "sessions_per_minute", 1),
    ("delete_burst", "deletes_per_minute", 1),
)


@dataclass
class Workspace:
    """Live messages over a virtual clock; every edit takes `edit_s`."""

    rates: Rates = field(default_factory=Rates)
    edit_s: float = 0.1
    now: float = 0.0
    planner: EditPlanner = field(init=False)
    granted: list[tuple[float, int]] = field(default_factory=list)
    running: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.planner = EditPlanner(self.rates)

    def advance(self, seconds: float) -> None:
        """Let time pass, granting and finishing as it does."""
        end = self.now + seconds
        while True:
            self._settle()
            step = self.planner.wait_s(self.now)
            times = [at for at, _ in self.running]
            if step is not None and step > 0:
                times.append(self.now + step + 1e-9)
            ahead = min(times, default=math.inf)
            if ahead > end:
                break
            self.now = max(self.now, ahead)
        self.now = end
        self._settle()

    def _settle(self) -> None:
        for at, key in [each for each in self.running if each[0] <= self.now]:
            self.running.remove((at, key))
            self.planner.finished(key, self.now)
        while (granted := self.planner.grant(self.now)) is not None:
            self.granted.append((self.now, granted))
            self.running.append((self.now + self.edit_s, granted))

    def keys(self) -> list[int]:
        return [key for _, key in self.granted]


def busiest_minute(times: list[float], late_s: float = 0.0) -> int:
    """Most events in any 60 s (plus what may arrive late from before)."""
    return max(
        (sum(1 for t in times if start <= t < start + 60 + late_s) for start in times), default=0
    )


ACTS = st.lists(
    st.tuples(st.integers(0, 24), st.sampled_from(Urgency), st.floats(0, 8)), max_size=150
)


@given(ACTS)
def test_never_more_edits_in_any_minute_than_slack_allows(
    acts: list[tuple[int, Urgency, float]],
) -> None:
    workspace = Workspace()
    for key in range(25):
        workspace.planner.open(key)
    for key, urgency, pause in acts:
        workspace.planner.want(key, urgency, workspace.now)
        workspace.advance(pause)
    workspace.advance(120)

    assert busiest_minute([at for at, _ in workspace.granted], late_s=3) <= SLACK_PER_MINUTE


def test_the_default_share_is_slacks_documented_one() -> None:
    assert Rates.with_edits(SLACK_PER_MINUTE) == Rates()


def test_edits_that_are_not_paced_are_all_granted_at_once() -> None:
    workspace = Workspace(Rates.with_edits(0))
    for key in range(200):
        workspace.planner.open(key)
        workspace.planner.want(key, Urgency.PROGRESS, 0.0)
    workspace.advance(0.01)

    assert len(workspace.granted) == 200


def test_a_workspace_with_its_own_limits_has_no_paced_method() -> None:
    unpaced = Rates.with_edits(0)

    assert unpaced == Rates.unlimited()
    allowances = [
        value for name, value in asdict(unpaced).items() if name.endswith(("_per_minute", "_per_s"))
    ]
    assert set(allowances) == {math.inf}


@pytest.mark.parametrize("share", [20, SLACK_PER_MINUTE, 200])
def test_a_burst_of_progress_stays_within_the_share(share: int) -> None:
    workspace = Workspace(Rates.with_edits(share))
    for key in range(40):
        workspace.planner.open(key)
    for _ in range(600):
        [workspace.planner.want(key, Urgency.PROGRESS, workspace.now) for key in range(40)]
        workspace.advance(0.5)

    assert busiest_minute([at for at, _ in workspace.granted], late_s=3) <= share


@given(ACTS)
def test_every_final_is_granted(acts: list[tuple[int, Urgency, float]]) -> None:
    workspace = Workspace()
    for key in range(25):
        workspace.planner.open(key)
    for key, urgency, pause in acts:
        workspace.planner.want(key, urgency, workspace.now)
        workspace.advance(pause)
    asked_at = workspace.now
    [workspace.planner.want(key, Urgency.FINAL, asked_at) for key in range(25)]
    workspace.advance(25 * 60 / workspace.rates.edits_per_minute + 5)

    assert {key for at, key in workspace.granted if at >= asked_at} == set(range(25))


@given(st.integers(2, 30))
@settings(deadline=None)
def test_no_live_answer_starves(live: int) -> None:
    workspace = Workspace()
    for key in range(live):
        workspace.planner.open(key)
    for _ in range(live * 10):
        [workspace.planner.want(key, Urgency.PROGRESS, workspace.now) for key in range(live)]
        workspace.advance(1)
    counts = [workspace.keys().count(key) for key in range(live)]

    assert min(counts) >= 3
    assert max(counts) - min(counts) <= 2


@given(ACTS)
def test_a_message_has_one_edit_at_a_time_and_progress_a_second_apart(
    acts: list[tuple[int, Urgency, float]],
) -> None:
    workspace = Workspace(Rates.unlimited(), edit_s=0.4)
    for key in range(25):
        workspace.planner.open(key)
    for key, urgency, pause in acts:
        workspace.planner.want(key, min(urgency, Urgency.PROGRESS), workspace.now)
        workspace.advance(pause / 8)
    workspace.advance(30)
    gaps = [
        later - earlier
        for key in range(25)
        for times in [[at for at, k in workspace.granted if k == key]]
        for earlier, later in pairwise(times)
    ]

    assert min(gaps, default=1.0) >= 1.0 - 1e-6


@given(ACTS, st.integers(0, 24))
def test_a_final_waits_only_for_its_messages_running_edit(
    acts: list[tuple[int, Urgency, float]], last: int
) -> None:
    workspace = Workspace(Rates.unlimited(), edit_s=0.4)
    for key in range(25):
        workspace.planner.open(key)
    for key, urgency, pause in acts:
        workspace.planner.want(key, urgency, workspace.now)
        workspace.advance(pause / 8)
    under_way = [at for at, key in workspace.running if key == last]
    workspace.planner.want(last, Urgency.FINAL, workspace.now)
    due = max([workspace.now, *under_way])
    workspace.advance(0.4 + 1e-6)

    assert any(key == last and abs(at - due) < 1e-6 for at, key in workspace.granted)


def test_finals_go_before_first_texts_before_progress() -> None:
    workspace = Workspace(Rates(edit_burst=1, final_reserve=0, first_reserve=0))
    for key in range(4):
        workspace.planner.open(key)
    workspace.planner.want(0, Urgency.FINAL, 0.0)
    workspace.advance(0)
    workspace.planner.want(1, Urgency.PROGRESS, 0.0)
    workspace.planner.want(2, Urgency.FIRST, 0.0)
    workspace.planner.want(3, Urgency.FINAL, 0.0)
    workspace.advance(10)

    assert workspace.keys() == [0, 3, 2, 1]


def test_progress_leaves_the_reserve_to_finals() -> None:
    workspace = Workspace()
    for key in range(20):
        workspace.planner.open(key)
    [workspace.planner.want(key, Urgency.PROGRESS, 0.0) for key in range(17)]
    workspace.advance(0)
    before = len(workspace.granted)
    [workspace.planner.want(key, Urgency.FINAL, 0.0) for key in range(17, 20)]
    workspace.advance(0)

    assert before == workspace.rates.edit_burst - workspace.rates.final_reserve
    assert workspace.keys()[before:] == [17, 18, 19]


def test_the_stalest_message_comes_first() -> None:
    workspace = Workspace()
    for key in range(3):
        workspace.planner.open(key)
    for key in (2, 0, 1):
        workspace.planner.want(key, Urgency.PROGRESS, workspace.now)
        workspace.advance(0.1)
    [workspace.planner.want(key, Urgency.PROGRESS, workspace.now) for key in range(3)]
    workspace.advance(30)

    assert workspace.keys() == [2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("share", [20, SLACK_PER_MINUTE, 200])
@pytest.mark.parametrize("processes", [2, 5, 10])
def test_processes_with_divided_rates_stay_within_the_share_together(
    share: int, processes: int
) -> None:
    rates = Rates.with_edits(share).divided(processes)
    workspaces = [Workspace(rates) for _ in range(processes)]
    for workspace in workspaces:
        for key in range(40):
            workspace.planner.open(key)
    for _ in range(600):
        for workspace in workspaces:
            [workspace.planner.want(key, Urgency.PROGRESS, workspace.now) for key in range(40)]
            workspace.advance(0.5)

    granted = sorted(at for workspace in workspaces for at, _ in workspace.granted)
    assert busiest_minute(granted, late_s=3) <= share
    assert len(granted) > 300 * share / 60 / 3


@pytest.mark.parametrize("processes", [1, 2, 3, 7, 16])
def test_no_minute_of_any_method_has_more_calls_when_rates_are_divided(processes: int) -> None:
    whole, part = asdict(Rates()), asdict(Rates().divided(processes))

    for burst, rate, minutes in ALLOWANCES:
        together = processes * (part[burst] + part[rate] * minutes)
        assert part[burst] >= 1
        assert part[rate] > 0
        assert together <= whole[burst] + whole[rate] * minutes + 1e-9
    assert processes * part["streams_at_once"] <= whole["streams_at_once"]


def test_rates_without_limits_have_none_when_divided() -> None:
    divided = asdict(Rates.unlimited().divided(4))

    assert {divided[rate] for _, rate, _ in ALLOWANCES} == {math.inf}


def test_a_first_text_is_sent_at_once_after_a_status_line() -> None:
    workspace = Workspace()
    workspace.planner.open(1)
    workspace.planner.want(1, Urgency.PROGRESS, 0.0)
    workspace.advance(0.15)
    workspace.planner.want(1, Urgency.FIRST, workspace.now)
    workspace.advance(0)

    assert len(workspace.granted) == 2


def test_edit_intervals_grow_with_the_number_of_live_answers() -> None:
    planner = EditPlanner(Rates())
    intervals = []
    for key in range(20):
        planner.open(key)
        intervals.append(planner.interval_s())

    assert intervals[0] == 1.0
    assert intervals == sorted(intervals)
    assert intervals[19] > 20


def test_nothing_is_granted_during_a_retry_after() -> None:
    workspace = Workspace()
    workspace.planner.open(1)
    workspace.planner.hold(7.0)
    workspace.planner.want(1, Urgency.FINAL, 0.0)
    workspace.advance(20)

    assert [at for at, _ in workspace.granted] == pytest.approx([7.0], abs=1e-6)


def test_a_change_during_an_edit_is_shown_by_the_next_one() -> None:
    workspace = Workspace(edit_s=0.5)
    workspace.planner.open(1)
    workspace.planner.want(1, Urgency.PROGRESS, 0.0)
    workspace.advance(0.1)
    workspace.planner.want(1, Urgency.PROGRESS, workspace.now)
    workspace.advance(5)

    assert workspace.keys() == [1, 1]


def test_many_changes_between_two_edits_are_one_edit() -> None:
    workspace = Workspace()
    workspace.planner.open(1)
    news = [workspace.planner.want(1, Urgency.PROGRESS, 0.0) for _ in range(100)]
    workspace.advance(10)

    assert workspace.keys() == [1]
    assert sum(news) == 1


def test_a_closed_message_is_never_granted() -> None:
    workspace = Workspace()
    workspace.planner.open(1)
    workspace.planner.want(1, Urgency.FINAL, 0.0)
    workspace.planner.close(1)
    workspace.advance(10)

    assert workspace.granted == []
    assert workspace.planner.wait_s(workspace.now) is None
