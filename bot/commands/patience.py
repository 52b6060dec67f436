"""How long `kortex check` waits for others. It ends within 15 s of its process's start, whatever they do.

On a slow machine Python's own start is some of these seconds, and all waits are shorter by as much.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from adapters.fault import Fault
from bot.reports.finding import Finding

WHOLE_S: Final = 15.0
END_S: Final = 2.5  # the table, and the interpreter's end
LEAST_S: Final = 5.0  # in less, what is well but far away would be told as silent
PART_S: Final = 9.0  # all parts are asked at once
PROBE_S: Final = 7.0  # one question, whose row then says which of them failed
SHARED_S: Final = 5.5  # of what other parts wait for
AFTER_S: Final = 3.0  # a question asked after that
MCP_END_S: Final = 3.2  # what a program that does not end by itself takes (adapters.mcp.stdio)
_SHARE: Final = ContextVar("share", default=1.0)
_STARTED: Final = 19  # of /proc/self/stat behind the name: ticks since the machine's boot, proc(5)


def process_age() -> Callable[[], float]:
    """What tells for how many seconds this process has run; from now on where the system does not tell.

    Reads a file.
    """
    began = time.monotonic() - _age_s()
    return lambda: time.monotonic() - began


def _age_s() -> float:
    try:
        told = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        began_s = int(told[_STARTED]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began_s)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def share_what_is_left(age_s: float) -> None:
    """Make every wait of this context shorter where the process took `age_s` so far."""
    left_s = WHOLE_S - END_S - age_s
    _SHARE.set(min(1.0, max(LEAST_S, left_s) / PART_S))


def within(seconds: float) -> float:
    """What is left of one of the waits above."""
    return seconds * _SHARE.get()


def unanswered(seconds: float) -> str:
    """What is said of a question that nobody answered."""
    return f"no answer within {within(seconds):.2g} s"


async def in_time(part: str, question: Awaitable[Finding]) -> Finding:
    """The row of one question, also where nobody answers it."""
    try:
        async with asyncio.timeout(within(PROBE_S)):
            return await question
    except TimeoutError:
        return Finding(part, False, unanswered(PROBE_S), fault=Fault.SILENT)
