"""The terminal while an answer grows, and after it."""

from typing import Any

import pytest

from bot.cli.chat.screen import Screen
from bot.web.api import models

DOUBT = models.ClaimsEvent(
    message_id="1",
    claims=[
        models.Claim(
            text="The pool is full.", evidence=["E1"], state="contradicted", note="not in E1"
        )
    ],
)
LOOKED = models.ToolEndEvent(
    message_id="1", tool_call_id="c1", tool="core__get_logs", ok=True, evidence="E1",
    summary="3 lines", latency_ms=4, truncated=False, error_code=None, message="",
)  # fmt: skip


def text(words: str) -> models.TextEvent:
    return models.TextEvent(message_id="1", text=words)


def done(words: str) -> models.DoneEvent:
    return models.DoneEvent(
        message_id="1", end="answered", text=words, provider="p", model="m", rounds=1,
        usage=models.Usage(
            input_tokens=1, input_uncached_tokens=1, cache_read_tokens=0,
            cache_write_tokens=0, output_tokens=1,
        ),
        cost_usd_micros=None, notices=[], evidence=[], verdict="", suspects=[], coverage=None,
    )  # fmt: skip


def shown(*events: Any, colour: bool = False) -> str:
    told: list[str] = []
    screen = Screen(told.append, colour=colour)
    for event in events:
        screen.event(event)
    return "".join(told)


@pytest.mark.parametrize(
    "events",
    [
        (text("Wait. "), text("The pool is full."), DOUBT, done("Wait. The pool is full.")),
        (text("Wait."), LOOKED, text("The pool is full."), done("Wait.\n\nThe pool is full.")),
        (text("Wait."), LOOKED, text("The pool is full."), done("The pool is full.")),
        (
            text("No."),
            models.ResetEvent(message_id="1", text="The pool is full."),
            done("The pool is full."),
        ),
        (DOUBT.model_copy(update={"claims": []}), done("The pool is full.")),
        (text("The pool "), done("The pool is full.")),
        (text("Wait."), LOOKED, text("The pool"), done("Wait.\n\nThe pool is full.")),
        (text("Wait."), LOOKED, text("The pool"), done("The pool is full.")),
        (text("The pool"), DOUBT, done("The pool is full.")),
    ],
)
def test_an_answer_is_printed_once(events: tuple[models.Event, ...]) -> None:
    assert shown(*events).count("The pool is full.\n") == 1


def test_an_incomplete_stream_is_completed_in_its_line() -> None:
    told = shown(text("I looked. The pool "), done("I looked.\nThe pool is full."))

    assert told.startswith("I looked. The pool is full.\n")


def test_a_final_text_that_differs_from_the_stream_is_printed() -> None:
    assert "The pool was full.\n" in shown(text("The pool is"), done("The pool was full."))


def test_an_identical_next_answer_is_printed() -> None:
    told = shown(text("It is full."), done("It is full."), done("It is full."))

    assert told.count("It is full.") == 2


@pytest.mark.parametrize("before", [(), (text("The pool"),), (text("The pool is full."),)])
def test_a_contradicted_statement_is_listed_after_the_answer(
    before: tuple[models.Event, ...],
) -> None:
    told = shown(*before, DOUBT, done("The pool is full.")).splitlines()

    assert told[:3] == [
        "The pool is full.",
        '! "The pool is full." [E1]: not in E1',
        "statements: 1 contradicted",
    ]


MARKED = "**Cause:** `a**b` is slow.\n```\nglob **/x\n```\n2 * 3 = 6.\n"
UNMARKED = "Cause: `a**b` is slow.\n```\nglob **/x\n```\n2 * 3 = 6.\n"


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_no_markdown_markup_is_shown_except_for_code(size: int) -> None:
    pieces = [text(MARKED[at : at + size]) for at in range(0, len(MARKED), size)]

    assert shown(*pieces, done(MARKED)).startswith(UNMARKED)
    bold = shown(*pieces, done(MARKED), colour=True)
    assert bold.startswith("\x1b[1mCause:\x1b[0m `a**b` is slow.\n")


def test_a_notice_belongs_to_its_own_answer() -> None:
    told = shown(DOUBT, done("The pool is full."), done("It is not."))

    assert told.count("not in E1") == 1
