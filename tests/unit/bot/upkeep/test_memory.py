"""Memory that is given back and shared, where the C library can."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from bot.upkeep import memory
from tests.sources import ROOT

# Each round leaves small pieces behind in what was freed, so that nothing returns it by itself.
GIVEN_BACK = """
from pathlib import Path
from bot.upkeep.memory import give_back
def kb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4
pieces = [bytes(2_000) for _ in range(20_000)]
kept = pieces[::400]
del pieces
before = kb()
give_back()
print(before - kb())
"""
ARENAS = """
import ctypes, threading
from bot.upkeep.memory import ARENAS, share_arenas
share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
inside, done = threading.Barrier(9), threading.Barrier(9)
def take():
    libc.malloc(64)
    inside.wait()
    done.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
for each in threads: each.start()
inside.wait()
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
done.wait()
"""


def told(script: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


glibc = pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or not hasattr(ctypes.CDLL(None), "malloc_info"),
    reason="glibc on Linux alone",
)


@glibc
def test_what_is_free_is_given_back() -> None:
    assert int(told(GIVEN_BACK)) > 10_000


@glibc
def test_threads_share_their_pools() -> None:
    assert told(ARENAS).count("<heap nr=") <= memory.ARENAS


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """One without glibc's calls."""

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Other())

    memory.share_arenas()
    memory.give_back()
