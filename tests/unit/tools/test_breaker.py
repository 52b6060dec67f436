"""A backend that does not answer: three calls wait for it, the next ones do not."""

import asyncio

import pytest

from tests.fakes.tools import INSTANT, EchoOutput, FakeTool, bench, contract
from tools.errors import (
    CapabilityUnavailable,
    InvalidArguments,
    NobodyToAsk,
    ToolErrorCode,
    UpstreamFailed,
)
from tools.recent_calls import FAILURES, OPEN_S, Breaker


class Hand:
    """A clock that is moved by hand."""

    at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


async def test_a_hanging_tool_is_suspended_and_other_tools_run() -> None:
    hung = FakeTool(contract(timeouts=INSTANT), gate=asyncio.Event())
    well = FakeTool(contract(id="core__well"))
    b = bench([hung, well])

    codes = [(await b.run()).record.error_code for _ in range(FAILURES)]
    resting = await b.run()

    assert codes == [ToolErrorCode.TOOL_TIMEOUT] * FAILURES
    assert resting.record.error_code is ToolErrorCode.UNAVAILABLE
    assert "echo did not answer 3 times in a row" in resting.content
    assert len(hung.calls) == FAILURES
    assert (await b.run(name="core__well")).record.ok


@pytest.mark.parametrize(
    "error", [UpstreamFailed("busy", 503), InvalidArguments("no"), RuntimeError("bug")], ids=repr
)
async def test_a_backend_that_answers_is_asked_again(error: Exception) -> None:
    def answer(_arguments: object) -> object:
        raise error

    tool = FakeTool(answer=answer)
    b = bench([tool])
    for _ in range(FAILURES + 2):
        await b.run()

    assert len(tool.calls) == FAILURES + 2


async def test_a_call_without_a_backend_fails_each_time_and_counts_for_nothing() -> None:
    def answer(_arguments: object) -> object:
        raise NobodyToAsk("no connection of their own")

    b = bench([FakeTool(answer=answer)])
    for _ in range(FAILURES):
        await b.run()

    assert "no connection of their own" in (await b.run()).content


def test_an_attempt_without_a_backend_leaves_the_next_one_free() -> None:
    hand = Hand()
    breaker = Breaker(hand)
    for _ in range(FAILURES):
        breaker.ended("core__echo", ToolErrorCode.UNAVAILABLE)
    hand.at_s = OPEN_S
    assert breaker.refusal("core__echo") is None

    breaker.untried("core__echo")

    assert breaker.refusal("core__echo") is None
    assert breaker.refusal("core__echo") is not None


async def test_a_success_between_failures_resets_the_count() -> None:
    answers: list[object] = [CapabilityUnavailable("gone")] * (FAILURES - 1)
    answers += [EchoOutput(text="back"), *answers]

    def answer(_arguments: object) -> object:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    tool = FakeTool(contract(live=True), answer=answer)
    b = bench([tool])
    for _ in range(2 * FAILURES - 1):
        await b.run()

    assert answers == []


def test_after_the_pause_one_call_tries_and_the_others_wait() -> None:
    clock = Hand()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        assert breaker.refusal("t") is None
        breaker.ended("t", ToolErrorCode.TOOL_TIMEOUT)
    assert "another 30 s" in (breaker.refusal("t") or "")

    clock.at_s = OPEN_S
    assert breaker.refusal("t") is None
    assert breaker.refusal("t") is not None
    breaker.ended("t", None)
    assert breaker.refusal("t") is None


def test_a_failed_trial_waits_for_the_same_time_again() -> None:
    clock = Hand()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        breaker.ended("t", ToolErrorCode.UNAVAILABLE)
    clock.at_s = OPEN_S
    assert breaker.refusal("t") is None
    breaker.ended("t", ToolErrorCode.UNAVAILABLE)

    assert "another 30 s" in (breaker.refusal("t") or "")
