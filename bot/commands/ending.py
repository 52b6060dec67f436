"""How a command ends: its exit code, and an output whose reader may go (`kortex tools | head -1`)."""

import os
import select
import sys
from typing import Final

OK, FAILED, USAGE = 0, 1, 2
READER_LEFT: Final = 141  # what a shell reports of a program that SIGPIPE ended


def reader_left() -> bool:
    """Whether standard output is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def discard() -> None:
    """Write nothing from now on: the interpreter would try once more at its end, and complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def announce(text: str) -> None:
    """A line for whoever watches a service, which goes on when nobody does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard()
