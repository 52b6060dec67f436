"""Allowances that several processes draw on: together they use no more than one alone would."""

import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.sending.pacing import Bucket, Rates, Urgency
from bot.slack.sending.posts import PostPlanner
from bot.slack.sending.shared_buckets import SharedShelf
from tests.sources import ROOT
from tests.unit.bot.slack.sending.test_pacing import SLACK_PER_MINUTE, Workspace, busiest_minute

BURST, PER_S = 7, 0.5
ACTS = st.lists(
    st.tuples(st.sampled_from(["take", "draw", "back", "wait"]), st.floats(0, 9)), max_size=60
)


DID: Mapping[str, Callable[[Bucket, float], object]] = {
    "take": lambda bucket, now: bucket.take_of(2, now),
    "draw": lambda bucket, now: bucket.draw(now),
    "back": lambda bucket, _now: bucket.give_back(),
    "wait": lambda bucket, now: bucket.wait_s(now, 3),
}


def played(bucket: Bucket, acts: list[tuple[str, float]]) -> list[object]:
    """What it says to them, each some seconds later than the one before."""
    now, told = 100.0, list[object]()
    for act, pause in acts:
        now += pause
        told.append((DID[act](bucket, now), bucket.level(now)))
    return told


@given(ACTS)
def test_one_process_sees_no_difference(acts: list[tuple[str, float]]) -> None:
    shared = SharedShelf().bucket("a", BURST, PER_S)

    assert played(shared, acts) == played(Bucket(BURST, PER_S), acts)


def test_what_one_uses_is_used_for_all_of_that_name_alone() -> None:
    shelf = SharedShelf()
    one, same, other = (shelf.bucket(name, BURST, PER_S) for name in ("a", "a", "b"))
    assert one.take_of(BURST, 1.0)

    assert same.level(1.0) == BURST - 1
    assert other.level(1.0) == BURST


@pytest.mark.parametrize("processes", [2, 5])
def test_a_storm_in_several_processes_stays_within_the_share_of_one(processes: int) -> None:
    rates = Rates().shared(SharedShelf(), processes).of("T1")
    all_of = [Workspace(rates) for _ in range(processes)]
    for workspace in all_of:
        for key in range(40):
            workspace.planner.open(key)
    for _ in range(600):
        for workspace in all_of:
            [workspace.planner.want(key, Urgency.PROGRESS, workspace.now) for key in range(40)]
            workspace.advance(0.5)

    granted = sorted(at for workspace in all_of for at, _ in workspace.granted)
    assert busiest_minute(granted, late_s=3) <= SLACK_PER_MINUTE
    assert len(granted) > 300 * Rates().edits_per_minute / 60


def test_posts_to_one_channel_are_counted_over_all_processes() -> None:
    rates = Rates().shared(SharedShelf(), 2).of("T1")
    planners = [PostPlanner(rates) for _ in range(2)]
    for planner in planners:
        for key, channel in enumerate(["C1"] * 5 + ["C2"]):
            planner.open(key, channel)
            planner.want(key, Urgency.FINAL, 0.0)
    granted = [planner.grant(0.0) for planner in planners for _ in range(6)]

    assert len([key for key in granted if key is not None]) == rates.post_burst + 2


def test_workspaces_have_allowances_of_their_own() -> None:
    rates = Rates().shared(SharedShelf(), 2)
    busy, idle = (rates.of(team).bucket("read", BURST, PER_S) for team in ("T1", "T2"))
    busy.draw(1.0)

    assert idle.level(1.0) == BURST


def test_more_names_than_there_is_room_for_forget_the_one_of_longest_ago() -> None:
    shelf = SharedShelf()
    for number in range(20_000):
        shelf.bucket(f"channel {number}", BURST, PER_S).draw(float(number))

    assert shelf.bucket("channel 19999", BURST, PER_S).level(19_999.0) == BURST - 1


HAMMERED = """
import os, sys
from bot.slack.sending.shared_buckets import SharedShelf
shelf = SharedShelf(lock_s=60.0)
for process in range(4):
    if not os.fork():
        bucket = shelf.bucket("a", 1000, 1e-9)
        os.write(1, b"%d\\n" % sum(bucket.take_of(1, 1.0) for _ in range(2000)))
        os._exit(0)
for process in range(4):
    os.wait()
"""


def test_processes_at_once_take_each_token_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HAMMERED], cwd=ROOT, check=True, capture_output=True, timeout=60
    )

    assert sum(map(int, done.stdout.split())) == 1000


HELD = """
import os, sys, time
from bot.slack.sending.shared_buckets import SharedShelf
shelf = SharedShelf()
theirs = os.fork()
if not theirs:
    with shelf.alone():
        os.write(1, b"held\\n")
        time.sleep(60)
os.read(0, 1)
began = time.monotonic()
print(shelf.bucket("a", 5, 1.0).take_of(1, 1.0), time.monotonic() - began < 1.0, flush=True)
os.kill(theirs, 9)
os.wait()
with shelf.alone():
    print("free", flush=True)
"""


def test_a_process_that_stands_still_with_the_lock_holds_up_nobody() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HELD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        told, _ = process.communicate(b".", timeout=60)
    finally:
        process.kill()
        process.wait()

    assert told.split() == [b"True", b"True", b"free"]
