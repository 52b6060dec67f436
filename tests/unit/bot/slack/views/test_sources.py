"""Behind *Evidence*: every result has a line or an option, and can be opened."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bot.demo.workspace.block_rules import check_view, options_of
from bot.demo.workspace.json_access import object_at, text_at
from bot.demo.workspace.timeline import interactive_elements
from bot.domain.turn_events import Evidence
from bot.slack.listeners.answer_clicks import EVIDENCE_BUTTON
from bot.slack.text.blocks import Block
from bot.slack.views.modals import View
from bot.slack.views.sources import (
    MAX_LINES,
    MAX_OPENABLE,
    OPEN_ACTION,
    SELECT_ACTION,
    Source,
    results_view,
)
from tests.golden.slack_views import TURN, outcome
from tools.errors import ToolErrorCode
from tools.records import ToolOutcome


def made(flaw: str = "", number: int = 1, **changes: Any) -> ToolOutcome:
    error = ToolErrorCode.UPSTREAM if flaw == "failed" else None
    return outcome(f"call{number}", error=error, truncated=flaw == "cut", **changes)


def opened(outcomes: Sequence[ToolOutcome]) -> View:
    results = [
        Source(Evidence.of(number, each), each.record.arguments)
        for number, each in enumerate(outcomes, 1)
    ]
    return results_view(TURN, results, "kept")


def blocks(view: View) -> tuple[Block, ...]:
    found = view["blocks"]
    assert isinstance(found, list)
    return tuple(each for each in found if isinstance(each, dict))


def lines(view: View) -> list[str]:
    return [text_at(object_at(b, "text"), "text") for b in blocks(view) if b["type"] == "section"]


@pytest.mark.parametrize("count", [1, 8, MAX_LINES, MAX_LINES + 1, 250, MAX_OPENABLE])
def test_every_result_of_an_answer_can_be_opened(count: int) -> None:
    view = opened([made(number=number) for number in range(1, count + 1)])
    elements = list(interactive_elements(blocks(view)))
    values = {text_at(each, "value") for each in elements if each["type"] == "button"}
    values |= {text_at(option, "value") for each in elements for option in options_of(each)}

    assert values == {f"{TURN}|{number}" for number in range(1, count + 1)}
    assert len(lines(view)) == min(count, MAX_LINES)
    check_view({name: value for name, value in view.items() if name != "id"}, "modal")


def test_results_beyond_the_menus_limit_are_reported() -> None:
    view = opened([made(number=number) for number in range(1, MAX_OPENABLE + 2)])

    assert "Results after E300 cannot be opened here." in str(blocks(view)[-1])


def test_failed_and_cut_results_are_counted_and_named_above_the_lines() -> None:
    view = opened([made(flaw, n) for n, flaw in enumerate(["", "failed", "cut", "failed"], 1)])

    assert "4 results · 2 failed (E2, E4) · 1 cut (E3)" in str(blocks(view)[0])
    assert lines(view)[1].startswith("*E2* ✗ get_logs checkout")


def test_a_line_has_tool_product_finding_range_and_duration() -> None:
    (line,) = lines(opened([made("cut")]))

    assert line == "*E1* get_logs checkout · 42 error lines · last 30m · cut · 87 ms"


def test_no_text_of_a_result_is_a_mention_or_a_disguised_link() -> None:
    hostile = "<!channel> <https://evil.test|ok> [l](https://evil.test/?d=S)"
    (line,) = lines(opened([made(summary=hostile, product=hostile)]))

    assert "<" not in line
    assert "](" not in line
    assert line.count("https://") == line.count("`https://")


def test_an_option_keeps_its_verdict_when_the_metric_s_name_is_long() -> None:
    found = "http_request_duration_seconds_p99 within baseline"
    long = outcome("a", name="core__compare_to_baseline", product="recommendations", summary=found)
    view = opened([*(made(number=n) for n in range(MAX_LINES)), long])

    (menu,) = [e for e in interactive_elements(blocks(view)) if e["action_id"] == SELECT_ACTION]
    assert object_at(list(options_of(menu))[-1], "text")["text"] == (
        "E91 compare_to_baseline recommendations · http_…_p99 within baseline"
    )


def test_every_button_is_one_the_app_listens_to() -> None:
    ids = [text_at(e, "action_id") for e in interactive_elements(blocks(opened([made()] * 5)))]

    assert ids == [f"{OPEN_ACTION}:{number}" for number in range(1, 6)]
    assert all(EVIDENCE_BUTTON.fullmatch(each) for each in ids)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"verdict":"cause","suspects":1,"also_found":["web moved [E1]", 7]}', "web moved"),
        ('{"also_found":["<!channel> *x* [l](http://e.test)"]}', "channel"),
    ],
)
def test_text_that_did_not_fit_the_answer_is_shown_above_its_results(
    content: str, words: str
) -> None:
    found = outcome("call1")
    stated = replace(Evidence.of(1, found), tool="core__report_findings", content=content)
    view = results_view(TURN, [Source(stated, {})], "kept")

    check_view(view, "modal")
    assert words in str(view)
    assert "Also found" in str(view)
    assert "<!channel>" not in str(view)


@pytest.mark.parametrize("content", ["", "null", "[]", '{"also_found":null}', '{"also_found":"x"}'])
def test_a_short_statement_adds_no_block(content: str) -> None:
    stated = replace(
        Evidence.of(1, outcome("call1")), tool="core__report_findings", content=content
    )

    assert "Also found" not in str(results_view(TURN, [Source(stated, {})], "kept"))
