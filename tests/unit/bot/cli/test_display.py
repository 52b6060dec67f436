"""What commands print: formatted in a terminal, plain in a pipe."""

import os
import pty
import subprocess
import sys

import pytest

from bot.cli.display import print_answer, print_rows

ROWS = [("FAILED", "slack", "no answer\n→ check it"), ("ok", "database", "sqlite, \x1b[31mred")]
PROGRAM = f"""
from bot.cli.display import print_answer, print_rows
print_rows({ROWS!r})
print_answer("**Cause**: [here](https://evil.test/?d=S)\\nsecond line `x`")
"""


HOSTILE = (
    "&#x202e;gnp.exe",
    "a&rlm;b",
    "&#8203;&ZeroWidthSpace;",
    "\x1b]8;;https://evil.test\x07click\x1b]8;;\x07",
    "\x9d8;;https://evil.test\x9cclick",
    "&#27;]8;;https://evil.test&#7;click",
    "![pod](https://evil.test/?d=S)",
    "[l][1]\n\n[1]: https://evil.test/?d=S",
    "[link=https://evil.test]click[/link]",
    "&amp; &lt;b&gt; 5 &gt; 3",
)


def in_terminal(program: str = PROGRAM, **more: str) -> str:
    """The output of that program in a terminal 60 columns wide."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **more}
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in more else None
    with subprocess.Popen([sys.executable, "-c", program], stdout=theirs, env=environment) as done:
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
    print_answer("**Cause**: the deploy of `a**b`\x1b[31m\n* **one** 2 * 3 **")

    assert capsys.readouterr().out.splitlines() == [
        "FAILED  slack     no answer",
        "                  → check it",
        "ok      database  sqlite",
        "Cause: the deploy of `a**b`",
        "* one 2 * 3 ",
    ]


def test_a_terminal_gets_colours_instead_of_markup_and_sees_link_targets() -> None:
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


def test_an_answer_hides_no_address_and_no_text_direction_in_a_terminal() -> None:
    program = (
        f"from bot.cli.display import print_answer\nfor each in {HOSTILE!r}: print_answer(each)"
    )
    told = in_terminal(program)

    assert [sign for sign in ("\x1b]8", "\x9d", "\u202e", "\u200f", "\u200b") if sign in told] == []
    assert "https://evil.test/?d=S" in told
    assert "& <b> 5 > 3" in told


WHOLE = (
    '<a href="https://one.test/x">ok</a>',
    "<html><body>two.test</body></html>",
    "![pod](https://three.test/x)",
    "see\n\n[^1]: https://four.test/x",
    "[l][1]\n\n[1]: https://five.test/x",
    "|a|\n|-|\n|[l](https://six.test/x)|",
    "# [l](https://seven.test/x)",
    "<https://eight.test/x>",
    "`x` <b>nine.test</b> `<i>`\n\n```\n<ten.test>\n```",
)


def test_a_terminal_drops_no_address_and_no_tag() -> None:
    program = f"from bot.cli.display import print_answer\nfor each in {WHOLE!r}: print_answer(each)"
    told = in_terminal(program)

    names = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert [name for name in names if f"{name}.test" not in told] == []
    assert "<html>" in told
    assert "\\<" not in told
    assert "\x1b]8" not in told
