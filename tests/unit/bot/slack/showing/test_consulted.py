"""The foot of an answer: what has a line, what is summed up, and that every result can be opened."""

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.block_elements import options_of
from bot.demo.workspace.block_rules import check_blocks
from bot.demo.workspace.json_access import object_at, objects_at, text_at
from bot.domain.turn_events import Evidence
from bot.slack.connection.bolt import EVIDENCE_BUTTON
from bot.slack.showing.consulted import (
    MAX_LINES,
    MAX_OPENABLE,
    OPEN_ACTION,
    SELECT_ACTION,
    consulted,
)
from bot.slack.text.blocks import Block
from tests.golden.slack_views import TURN, outcome
from tools.errors import ToolErrorCode
from tools.records import ToolOutcome

FLAWS = st.sampled_from(["", "failed", "cut"])


def made(flaw: str, number: int, latency_ms: int = 10) -> ToolOutcome:
    return outcome(
        f"call{number}",
        error=ToolErrorCode.UPSTREAM if flaw == "failed" else None,
        message="upstream: 503",
        truncated=flaw == "cut",
        latency_ms=latency_ms,
    )


def foot(text: str, outcomes: Sequence[ToolOutcome]) -> list[Block]:
    evidence = [Evidence.of(number, each) for number, each in enumerate(outcomes, 1)]
    records = {each.record.tool_call_id: each.record for each in outcomes}
    return list(consulted(TURN, text, evidence, records))


def plain(count: int) -> list[ToolOutcome]:
    return [made("", number) for number in range(1, count + 1)]


def lines(blocks: Sequence[Block]) -> list[str]:
    heading, *rest = text_at(objects_at(blocks[0], "elements")[0], "text").split("\n")
    assert heading == "*Consulted*"
    return rest


def listed(blocks: Sequence[Block]) -> list[int]:
    return [int(each[1]) for line in lines(blocks) if (each := re.match(r"\*E(\d+)\*", line))]


def elements(blocks: Sequence[Block]) -> list[Block]:
    return [each for block in blocks for each in objects_at(block, "elements")]


def buttons(blocks: Sequence[Block]) -> list[Block]:
    return [each for each in elements(blocks) if each["type"] == "button"]


def options(blocks: Sequence[Block]) -> list[Block]:
    return [option for each in elements(blocks) for option in options_of(each)]


def openable(blocks: Sequence[Block]) -> set[str]:
    return {text_at(each, "value") for each in [*buttons(blocks), *options(blocks)]}


def citing(numbers: Iterable[int]) -> str:
    return " ".join(f"so it is [E{number}]" for number in numbers)


@given(
    flaws=st.lists(FLAWS, min_size=1, max_size=MAX_OPENABLE),
    cites=st.lists(st.integers(1, 400), max_size=12),
)
def test_every_result_can_be_opened_and_nothing_is_hidden(
    flaws: list[str], cites: list[int]
) -> None:
    outcomes = [made(flaw, number, number) for number, flaw in enumerate(flaws, 1)]
    blocks = foot(citing(cites), outcomes)
    shown = set(listed(blocks))
    rest = [n for n in range(1, len(flaws) + 1) if n not in shown]
    summary = lines(blocks)[len(shown) :]

    assert openable(blocks) == {f"{TURN}|{n}" for n in range(1, len(flaws) + 1)}
    assert len(shown) <= MAX_LINES
    assert len(buttons(blocks)) <= 5
    assert len(summary) == bool(rest)
    told = "".join(summary)
    assert told.startswith(f"… and {len(rest)} more: " if rest else "")
    assert _count(told, "failed") == sum(flaws[n - 1] == "failed" for n in rest)
    assert _count(told, "cut") == sum(flaws[n - 1] == "cut" for n in rest)
    assert _together_ms(told) == pytest.approx(sum(rest), abs=50)
    check_blocks(blocks, "message")


def _count(told: str, word: str) -> int:
    found = re.search(rf"(\d+) {word} \(", told)
    return int(found[1]) if found else 0


def _together_ms(told: str) -> float:
    found = re.search(r"([\d.]+) (ms|s) together$", told)
    return float(found[1]) * (1 if found[2] == "ms" else 1_000) if found else 0


def test_no_more_results_than_lines_are_all_listed() -> None:
    assert listed(foot(citing([2]), plain(8))) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_of_many_results_the_cited_ones_are_listed_by_number() -> None:
    blocks = foot("slow [E30, E2], not cart [E12][E2], nor [E99]", plain(34))

    assert listed(blocks) == [2, 12, 30]
    assert [text_at(each, "action_id") for each in buttons(blocks)] == [
        f"{OPEN_ACTION}:{n}" for n in (2, 12, 30)
    ]
    assert lines(blocks)[-1] == "… and 31 more: none failed or cut · 310 ms together"


def test_failed_results_keep_lines_though_the_answer_cites_more_than_fit() -> None:
    outcomes = [made("failed" if n in {20, 21} else "", n) for n in range(1, 35)]

    assert listed(foot(citing(range(1, 13)), outcomes)) == [1, 2, 3, 4, 5, 6, 20, 21]


def test_failures_beyond_the_lines_are_counted_and_named() -> None:
    outcomes = [made("failed", n, 1_000) for n in range(1, 12)]

    assert lines(foot("", outcomes))[-1] == "… and 3 more: 3 failed (E9, E10, E11) · 3.0 s together"


def test_an_answer_that_cites_nothing_lists_the_first_results() -> None:
    assert listed(foot("no idea", plain(34))) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_line_says_tool_product_finding_range_and_duration() -> None:
    (line,) = lines(foot("", [outcome("a", truncated=True)]))

    assert line == "*E1* get_logs checkout · 42 error lines · last 30m · cut · 87 ms"


@pytest.mark.parametrize(("count", "menus"), [(5, 0), (6, 1), (100, 1), (101, 1)])
def test_one_menu_appears_once_the_buttons_do_not_do(count: int, menus: int) -> None:
    shown = elements(foot("", plain(count)))

    assert [each.get("action_id") for each in shown].count(SELECT_ACTION) == menus


def test_above_a_hundred_the_menu_has_groups() -> None:
    (menu,) = [e for e in elements(foot("", plain(250))) if e["type"] == "static_select"]

    labels = [object_at(group, "label") for group in objects_at(menu, "option_groups")]
    assert [label["text"] for label in labels] == ["E1 to E100", "E101 to E200", "E201 to E250"]


def test_what_no_menu_can_hold_is_said() -> None:
    blocks = foot("", plain(MAX_OPENABLE + 1))

    assert len(options(blocks)) == MAX_OPENABLE
    assert "Results after E300 cannot be opened here." in str(blocks[-1])


def test_an_option_keeps_its_verdict_when_the_metric_s_name_is_long() -> None:
    found = "http_request_duration_seconds_p99 within baseline"
    long = outcome("a", name="core__compare_to_baseline", product="recommendations", summary=found)

    option = options(foot("", [*plain(8), long]))[-1]
    assert option["text"] == {
        "type": "plain_text",
        "text": "E9 compare_to_baseline recommendations · http_…_p99 within baseline",
    }


def test_every_button_is_one_the_app_listens_to() -> None:
    ids = [text_at(each, "action_id") for each in buttons(foot("", plain(5)))]

    assert len([each for each in ids if EVIDENCE_BUTTON.fullmatch(each)]) == 5
