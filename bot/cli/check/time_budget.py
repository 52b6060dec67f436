"""How long `kortex check` waits, and what it says of a part that does not answer.

The command ends within 15 s of the start of its process. On a slow machine Python's own start is some
of these seconds, and all waits are shorter by as much.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from threading import Thread
from typing import Final, TypeVar

from adapters.errors import AdapterError
from adapters.fault import Fault, fault_of
from bot.reports.finding import Finding
from bot.settings.reading import ConfigurationError
from tools.errors import ToolError

WHOLE_S: Final = 15.0
END_S: Final = 2.5  # the table, and the interpreter's end
LEAST_S: Final = 5.0  # in less time, a healthy but distant system would count as silent
PART_S: Final = 9.0  # all parts are asked at once
PROBE_S: Final = 7.0  # one request, so that the row says which one failed
SHARED_S: Final = 5.5  # of what other parts wait for
AFTER_S: Final = 3.0  # a question asked after that
MCP_END_S: Final = 3.2  # what a program that does not end by itself takes (adapters.mcp.stdio)
_SHARE: Final = ContextVar("share", default=1.0)
_STARTED: Final = 19  # of /proc/self/stat behind the name: ticks since the machine's boot, proc(5)
Made = TypeVar("Made")


def process_age() -> Callable[[], float]:
    """A function that returns for how many seconds this process has run.

    Counts from now where the system does not say when the process began. Reads a file.
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


def shorten_waits(age_s: float) -> None:
    """Make every wait of this context shorter where the process took `age_s` so far."""
    left_s = WHOLE_S - END_S - age_s
    _SHARE.set(min(1.0, max(LEAST_S, left_s) / PART_S))


def within(seconds: float) -> float:
    """The part of one of these limits that is left for this process."""
    return seconds * _SHARE.get()


def unanswered(seconds: float) -> str:
    return f"no answer within {within(seconds):.2g} s"


def silent(part: str, seconds: float, after: str = "") -> Finding:
    """The row of a part that did not answer within one of these limits."""
    return Finding(part, False, f"{unanswered(seconds)}{after}", fault=Fault.SILENT)


def unset(part: str, table: str) -> Finding:
    """The row of a part that is not configured, which is no failure."""
    return Finding(part, False, f"not set in {table}", configured=False)


def failed(part: str, error: Exception, before: str = "", after: str = "") -> Finding:
    """The row of a question that failed with this error."""
    words = str(error) or unanswered(PROBE_S)  # a timeout has no words of its own
    return Finding(part, False, f"{before}{words}{after}", fault=fault_of(error))


async def probed(
    part: str, ask: Callable[[], Awaitable[str]], before: str = "", after: str = ""
) -> Finding:
    """The row of one question: the words of its answer and `after`.

    Where it fails or is too slow, the reason, between `before` and `after`.
    """
    try:
        async with asyncio.timeout(within(PROBE_S)):
            words = await ask()
    except (AdapterError, ToolError, ConfigurationError, TimeoutError) as error:
        return failed(part, error, before, after)
    return Finding(part, True, f"{words}{after}")


class UnwaitedThreads(ThreadPoolExecutor):
    """A thread for each piece of work. The end of the process does not wait for it.

    A name server that is away holds a thread for 5 to 30 s per name (resolv.conf(5)). In a pool, a few
    such threads would block healthy work and the exit.
    """

    def submit(
        self, work: Callable[..., Made], /, *arguments: object, **named: object
    ) -> Future[Made]:
        future: Future[Made] = Future()
        Thread(target=_run, args=(future, work, arguments, named), daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing is kept that would have to end."""


def _run(
    future: Future[Made],
    work: Callable[..., Made],
    arguments: tuple[object, ...],
    named: dict[str, object],
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work(*arguments, **named))
    except BaseException as error:  # noqa: BLE001 - as of any executor: it is raised where it is waited for
        future.set_exception(error)
