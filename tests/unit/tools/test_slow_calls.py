"""A slow call by the defaults, on a set clock: reported after 30 s, cut at its limit."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes.tools import FakeTool, bench, contract
from tests.set_time import in_set_time
from tools.contract import COMPUTED, LOOKUP, QUERY, AnyTool, Timeouts
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.runner import SLOW_AFTER_S

Told = list[tuple[str, float]]


async def never_answered(of: Timeouts, **options: Any) -> tuple[Told, dict[str, Any]]:
    told: Told = []
    box = bench([FakeTool(contract(timeouts=of), gate=asyncio.Event())], **options)
    loop = asyncio.get_running_loop()

    def append(event: object) -> None:
        told.append((type(event).__name__, round(loop.time(), 3)))

    box.events = SimpleNamespace(append=append)  # type: ignore[assignment]
    outcome = await box.run()
    return told, json.loads(outcome.content)


def test_a_query_is_reported_as_slow_after_thirty_seconds_and_cut_after_five_minutes() -> None:
    told, answer = in_set_time(never_answered(QUERY))

    assert told == [("CallStarted", 0.0), ("CallSlow", SLOW_AFTER_S), ("CallEnded", 300.0)]
    assert (answer["error"], answer["elapsed"]) == ("tool_timeout", "5m")


@pytest.mark.parametrize("timeouts", [COMPUTED, LOOKUP])
def test_a_quick_tool_is_cut_before_it_would_be_reported_as_slow(timeouts: Timeouts) -> None:
    told, answer = in_set_time(never_answered(timeouts))

    assert told == [("CallStarted", 0.0), ("CallEnded", timeouts.default_s)]
    assert answer["error"] == "tool_timeout"


@pytest.mark.parametrize(
    ("configured", "told"),
    [
        (60.0, [("CallSlow", 30.0), ("CallEnded", 60.0)]),
        (3600.0, [("CallSlow", 30.0), ("CallEnded", 300.0)]),
        (5.0, [("CallEnded", 5.0)]),
    ],
)
def test_a_configured_deadline_cuts_within_the_ceiling(configured: float, told: Told) -> None:
    heard, _ = in_set_time(never_answered(QUERY, timeouts={"echo": configured}))
    assert heard[1:] == told


@pytest.mark.parametrize(
    "tool", core_tools(CursorSigner(b"k" * 32)), ids=lambda tool: tool.contract.short_name
)
def test_no_default_deadline_coincides_with_the_slow_report(tool: AnyTool) -> None:
    limit_s = tool.contract.timeouts.default_s
    assert limit_s < SLOW_AFTER_S or limit_s >= 2 * SLOW_AFTER_S
