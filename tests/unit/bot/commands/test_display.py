"""What commands print: formatted in a terminal, plain in a pipe."""

import os
import pty
import subprocess
import sys

import pytest

from bot.commands.display import print_answer, print_rows

ROWS = [("FAILED", "slack", "no answer\n→ check it"), ("ok", "database", "sqlite, \x1b[31mred")]
PROGRAM = f"""
from bot.commands.display import print_answer, print_rows
print_rows({ROWS!r})
print_answer("**Cause**: [here](https://evil.test/?d=S)\\nsecond line `x`")
"""


def in_terminal(**more: str) -> str:
    """The output of that program in a terminal 60 columns wide."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **more}
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in more else None
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=theirs, env=environment) as done:
        os.close(theirs)
        told = b""
        try:
            while part := os.read(ours, 4096):
                told += part
        except OSError:  # how Linux says that the other end closed
            pass
        os.close(ours)
    assert done.returncode == 0
    return told.decode().replace("\r\n", "\n")


def test_a_pipe_gets_plain_aligned_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([*ROWS[:1], ("ok", "database", "sqlite")])
    print_answer("**Cause**: the deploy")

    assert capsys.readouterr().out.splitlines() == [
        "FAILED  slack     no answer",
        "                  → check it",
        "ok      database  sqlite",
        "**Cause**: the deploy",
    ]


def test_a_terminal_gets_colours_and_no_marks_and_sees_where_a_link_leads() -> None:
    told = in_terminal()

    assert "\x1b[1;31mFAILED" in told
    assert "\x1b[31mred" not in told
    assert "**" not in told
    assert "https://evil.test/?d=S" in told
    assert "second line" in told.splitlines()[-1]


def test_no_color_is_respected() -> None:
    told = in_terminal(NO_COLOR="1")

    assert "\x1b[1;31m" not in told
    assert "\x1b[32m" not in told
    assert "**" not in told
