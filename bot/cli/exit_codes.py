"""How a command ends: its exit code, and a pipe that closes early (`kortex tools | head -1`)."""

import os
import select
import sys
from typing import Final

OK, FAILED, USAGE = 0, 1, 2
INTERRUPTED: Final = 130  # what a shell reports of a program that Ctrl-C ended
READER_LEFT: Final = 141  # what a shell reports of a program that SIGPIPE ended


def output_closed() -> bool:
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def discard() -> None:
    """Write nothing from now on: the interpreter would try once more at its end, and complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def announce(text: str) -> None:
    """Print a line for the people who watch a service. The service goes on without a reader."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard()
