"""What a turn may ask: each limit ends in a result that says so, and nothing runs past it."""

import asyncio

import orjson
import pytest

from tests.fakes.tools import ALL, FakeTool, bench
from tools.call_limits import MAX_RESULT_BYTES, MIN_RESULT_BYTES, CallLimits, Spent
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy

SMALL = ToolPolicy(
    ALL.toolsets, limits={"investigate": CallLimits(calls=3, same_calls=2, turn_bytes=1000)}
)


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (Spent(same_calls=2), "this same call was made twice in this turn already"),
        (Spent(calls=3), "a turn may make 3 tool calls"),
        (Spent(result_bytes=1000), "a turn may read 1000 bytes"),
    ],
)
async def test_a_call_over_the_limit_is_an_error_that_says_so(spent: Spent, words: str) -> None:
    tool = FakeTool()
    b = bench([tool], SMALL)

    outcome = await b.run(spent=spent)

    assert outcome.record.error_code is ToolErrorCode.POLICY_DENIED
    assert words in orjson.loads(outcome.content)["message"]
    assert b.records == [outcome.record]
    assert tool.calls == []


async def test_up_to_the_limit_a_call_runs() -> None:
    outcome = await bench([FakeTool()], SMALL).run(
        spent=Spent(calls=2, result_bytes=999, same_calls=1)
    )

    assert outcome.record.ok


async def test_a_purpose_without_its_own_budget_has_the_default() -> None:
    policy = ToolPolicy(
        {"recommend": ("core__*",)}, limits=SMALL.limits, default_limits=CallLimits(calls=7)
    )

    outcome = await bench([FakeTool()], policy).run(purpose="recommend", spent=Spent(calls=7))

    assert "a turn may make 7 tool calls" in outcome.content


async def test_a_forbidden_tools_error_does_not_mention_budgets() -> None:
    outcome = await bench([FakeTool()], SMALL).run(name="core__other", spent=Spent(calls=3))

    assert "no such tool" in outcome.content


async def test_a_result_is_cut_to_the_purposes_limit() -> None:
    policy = ToolPolicy(ALL.toolsets, default_limits=CallLimits(result_bytes=MIN_RESULT_BYTES))

    outcome = await bench([FakeTool()], policy).run('{"text":"abcdefgh","times":5000}')

    assert outcome.record.truncated
    assert len(outcome.content) <= MIN_RESULT_BYTES


async def test_a_call_is_cut_at_the_purposes_deadline() -> None:
    policy = ToolPolicy(ALL.toolsets, default_limits=CallLimits(call_time_s=0.001))

    outcome = await bench([FakeTool(gate=asyncio.Event())], policy).run()

    assert outcome.record.error_code is ToolErrorCode.TOOL_TIMEOUT


@pytest.mark.parametrize(
    "limits",
    [
        {"calls": 0},
        {"same_calls": 0},
        {"turn_bytes": 0},
        {"call_time_s": 0},
        {"call_time_s": float("nan")},
        {"result_bytes": MIN_RESULT_BYTES - 1},
        {"result_bytes": MAX_RESULT_BYTES + 1},
    ],
)
def test_an_invalid_limit_is_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"limit|result"):
        CallLimits(**limits)  # type: ignore[arg-type]
