"""Many calls at once: counted, with what went wrong still listed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text.limits import CONTEXT_ELEMENTS
from bot.slack.views.tool_chips import Chip, ChipState, advance, chip_texts, short
from tests.golden.slack_views import FAILURES
from tools.errors import ToolErrorCode
from tools.records import CallEnded, ToolOutcome

CHIPS = st.builds(Chip, st.just("get_logs"), st.just("checkout"), st.sampled_from(ChipState))


@given(st.lists(CHIPS, min_size=9, max_size=60))
def test_many_calls_are_counted_or_listed_without_a_gap(chips: list[Chip]) -> None:
    texts = chip_texts(chips)
    listed = [text for text in texts if "get_logs" in text]
    counted = [int(n) for text in texts if "get_logs" not in text for n in re.findall(r"\d+", text)]

    assert len(texts) <= CONTEXT_ELEMENTS
    assert sum(counted) + len(listed) == len(chips)


@given(st.lists(CHIPS, max_size=8))
def test_few_calls_are_all_listed(chips: list[Chip]) -> None:
    assert chip_texts(chips) == [chip.text for chip in chips]


def test_failures_are_listed_next_to_the_counts() -> None:
    def chips(state: ChipState, count: int) -> list[Chip]:
        return [Chip("get_logs", "checkout", state)] * count

    running, done = chips(ChipState.RUNNING, 3), chips(ChipState.OK, 18)
    broken, cut = chips(ChipState.BROKEN, 1), chips(ChipState.CUT, 2)

    assert chip_texts([*running, *done, *broken, *cut]) == [
        "✓ 18 done · ⚪ ▣ 2 cut or stopped · ⏳ 3 running",
        "🔴 ✗ get_logs checkout",
    ]


def test_above_eight_failures_the_latest_are_listed() -> None:
    broken = [Chip("get_logs", f"p{n}", ChipState.BROKEN) for n in range(12)]

    first, *listed = chip_texts(broken)
    assert first == "🔴 ✗ 4 more with problems"
    assert [text.split()[-1] for text in listed] == [f"p{n}" for n in range(4, 12)]


# What the design promises of each class: its colour says whose turn it is to look.
COLOURS = {
    ToolErrorCode.VALIDATION: "🟡 ⚠",
    ToolErrorCode.INVALID_JSON: "🟡 ⚠",
    ToolErrorCode.TOOL_TIMEOUT: "🟡 ⚠",
    ToolErrorCode.UNAVAILABLE: "🟡 ⚠",
    ToolErrorCode.POLICY_DENIED: "🟡 ⚠",
    ToolErrorCode.AUTHZ_DENIED: "🟡 ⚠",
    ToolErrorCode.UPSTREAM: "🔴 ✗",
    ToolErrorCode.EXECUTION: "🔴 ✗",
    ToolErrorCode.OUTPUT_INVALID: "🔴 ✗",
    ToolErrorCode.REDACTION_FAILED: "🔴 ✗",
    ToolErrorCode.CANCELLED: "⚪ ▣",
    None: "⚪ ▣",  # a result that was cut
}


@pytest.mark.parametrize("made", FAILURES, ids=lambda made: made.record.tool_call_id)
def test_each_class_of_failure_has_its_colour(made: ToolOutcome) -> None:
    assert advance(None, CallEnded(made)).text.startswith(COLOURS[made.record.error_code])


def test_every_class_of_failure_has_a_golden_chip() -> None:
    assert {made.record.error_code for made in FAILURES} == {*ToolErrorCode, None}


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ("core__get_logs", "get_logs"),
        ("plugin__ticket_search", "ticket_search"),
        ("mcp__wiki__get_logs", "wiki/get_logs"),
        ("mcp__wiki__core__get_logs", "wiki/core__get_logs"),
        ("unknown", "unknown"),
    ],
)
def test_an_mcp_tool_is_not_shown_as_a_built_in(tool: str, shown: str) -> None:
    assert short(tool) == shown
