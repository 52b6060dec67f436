"""Providers fail in every way: the next one answers and the footer says so, or the end is honest.

One bot with two providers serves these tests; the question's `case:` names what its models do.
"""

import asyncio
import re

import pytest

from tests.fakes.model_server import Call, Failure, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import Stage, results

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLOCK = Call("core__get_current_time", {})
SETTINGS = {
    "llm": {
        "triage_fallback": False,
        "fallback_providers": ["anthropic"],
        "providers": {"openai": {"timeout": "1s"}},
    }
}
NEVER = asyncio.Event()
# What OpenAI does; Anthropic answers but for what begins with "both".
CASES = {
    "refuses": Round(failure=Failure(401, "bad key")),
    "breaks": Round(failure=Failure(500, "on fire")),
    "hangs": Round(text=("never said",), hold=NEVER, hold_at=-1),
    "cuts-at-once": Round(text=("never said",), cut_at=0),
    "cuts-in-mid-sentence": Round(text=("The pool is ", "exhausted"), cut_at=2),
    "errs-in-mid-sentence": Round(text=("The pool is ", "exhausted"), error_at=2),
    "both-refuse": Round(failure=Failure(401, "bad key")),
    "ever-more-tools": Round(text=("Once more. ",), calls=(CLOCK,)),
    "asks-for-nonsense": Round(calls=(Call("core__get_logs", '{"product": "checkout", '),)),
    "asks-for-too-little": Round(calls=(Call("core__get_logs", {"time_range": "last 30m"}),)),
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Do as the question's case says; after a failed call, conclude."""
    case = re.findall(r"case:([a-z-]+)", request.raw.decode())[-1]
    if request.wire == "anthropic" and not case.startswith("both"):
        return Round(text=("All is well, says the other.",))
    if case.startswith("asks-for") and results(request):
        return Round(text=("I asked wrongly.",))
    return CASES[case]


@pytest.fixture(autouse=True)
def _closed_circuits(shared_stage: Stage) -> None:
    """A provider that failed in another test is asked again."""
    ask_everyone_again(shared_stage)


def ask_everyone_again(stage: Stage) -> None:
    stage.service.base.rounds._circuits._by_model.clear()


async def answered(stage: Stage, case: str) -> str:
    return await stage.answered(f"@kortex case:{case}", stage.newcomer())


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("refuses", "openai answered 401"),
        ("breaks", "openai answered 500"),
        ("hangs", "openai did not answer in time"),
        ("cuts-at-once", "openai cannot be reached"),
    ],
)
async def test_a_failure_before_any_text_turns_to_the_next_provider_and_the_footer_says_so(
    shared_stage: Stage, case: str, why: str
) -> None:
    answer = await answered(shared_stage, case)

    assert "All is well, says the other." in answer
    assert "never said" not in answer
    assert f"ℹ️ {why}" in answer
    assert "anthropic/other-model" in answer


@pytest.mark.parametrize("case", ["cuts-in-mid-sentence", "errs-in-mid-sentence"])
async def test_a_provider_that_fails_in_mid_sentence_ends_with_its_partial_text(
    shared_stage: Stage, case: str
) -> None:
    answer = await answered(shared_stage, case)

    assert "The pool is" in answer
    assert "could not be finished" in answer
    assert "says the other" not in answer


async def test_when_all_providers_fail_the_answer_says_why_and_that_nothing_changed(
    shared_stage: Stage,
) -> None:
    answer = await answered(shared_stage, "both-refuse")

    assert "could not be finished" in answer
    assert "Nothing was changed; ask again." in answer
    assert "openai answered" in answer
    assert "anthropic answered" in answer


async def test_the_thread_continues_after_a_failure(shared_stage: Stage) -> None:
    user = shared_stage.newcomer()
    asked = await shared_stage.ask("@kortex case:both-refuse", user)
    await shared_stage.answer(asked)
    ask_everyone_again(shared_stage)

    again = await shared_stage.answered("case:refuses, still?", user, thread=asked.thread)

    assert "All is well, says the other." in again


async def test_eight_rounds_of_tools_report_the_limit_and_keep_the_evidence(
    shared_stage: Stage,
) -> None:
    before = len(shared_stage.models.requests)

    answer = await answered(shared_stage, "ever-more-tools")

    assert len(shared_stage.models.requests) - before == 9  # the ninth might have concluded
    assert "No conclusion" in answer
    assert "rounds of tools (`[llm] max_tool_depth`)" in answer
    assert "8 results behind *Evidence*." in answer


@pytest.mark.parametrize(
    ("case", "told"),
    [("asks-for-nonsense", "invalid_json"), ("asks-for-too-little", "validation")],
)
async def test_invalid_arguments_go_back_to_the_model_and_the_turn_continues(
    shared_stage: Stage, case: str, told: str
) -> None:
    answer = await answered(shared_stage, case)

    (result,) = results(shared_stage.models.requests[-1])
    assert told in result
    assert "I asked wrongly." in answer
