"""What is not collected, and what happens at the end all the same."""

import subprocess
import sys

import pytest

from tests.sources import ROOT

PROCESS = """
import atexit, gc, sys
from bot.upkeep.garbage import collect_seldom
class Loop:
    def __init__(self): self.itself = self
    def __del__(self): print("collected")
collections = []
def begins(phase, _): collections.append(phase)
atexit.register(lambda: print("ended", len(collections)))
{}
gc.callbacks.append(begins)
Loop()
kept = [[] for _ in range(20_000)]
print("written", end=" ")
"""


@pytest.mark.parametrize(
    ("before", "told"),
    [("collect_seldom()", "written ended 0\n"), ("gc.disable()", "written ended 0\ncollected\n")],
)
def test_what_is_garbage_at_the_end_of_a_command_stays(before: str, told: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROCESS.format(before)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )

    assert ended.stdout == told


STARTED = """
import gc
from bot.upkeep.garbage import collect_seldom, spare_what_stays
class Loop:
    def __init__(self): self.itself = self
    def __del__(self): print("collected", end=" ")
collect_seldom()
Loop()
spare_what_stays()
print(gc.get_freeze_count() > 1_000, end=" ")
"""


def test_what_a_start_left_behind_last_is_not_kept_with_what_stays() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=ROOT, check=True, capture_output=True, text=True
    )

    assert ended.stdout == "collected True "
