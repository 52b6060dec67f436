"""An answer's figures and citations must come from its evidence."""

import pytest

from bot.chat.grounding import doubts
from bot.domain.events import Evidence


def _evidence(content: str, number: int = 1) -> Evidence:
    return Evidence(
        number, f"c{number}", "core__get_metrics", "p99, last 30m", True, 80, False, content
    )


SEEN = [_evidence('{"window_max": 2.41, "baseline_mean": 0.318, "lines": 1204, "ratio": 0.731}')]


@pytest.mark.parametrize(
    "answer",
    [
        "p99 rose to 2.41 s from 0.318 s [E1].",
        "p99 rose to 2.4 s, usually 318 ms [E1].",
        "73.1 % of requests failed [E1].",
        "1,204 lines [E1] in the last 30 min.",
        "two replicas and 3 hosts look fine [E1].",
        "v2.4.0 went out at 14:31 UTC [E1].",
    ],
)
def test_figures_that_a_tool_returned_stand(answer: str) -> None:
    assert doubts(answer, SEEN, "why is checkout slow?") == ()


@pytest.mark.parametrize(
    ("answer", "figure"),
    [
        ("Errors are at 87 % [E1].", "87 %"),
        ("p99 is 9.7 s [E1].", "9.7 s"),
        ("It affects 45,310 users [E1].", "45,310"),
    ],
)
def test_a_figure_that_no_tool_returned_is_named(answer: str, figure: str) -> None:
    assert doubts(answer, SEEN, "why?") == (f"not found in any tool result: {figure}",)


def test_a_citation_of_evidence_that_does_not_exist_is_named() -> None:
    assert "cites E7, which does not exist" in doubts("It is payments [E7].", SEEN, "why?")


def test_an_answer_without_any_citation_is_flagged_when_there_was_evidence() -> None:
    assert doubts("It is payments.", SEEN, "why?") == ("the answer cites none of its evidence",)


def test_without_evidence_a_plain_answer_is_not_flagged() -> None:
    assert doubts("I can look at logs and metrics.", [], "what can you do?") == ()


def test_figures_of_the_question_and_in_code_are_not_claims() -> None:
    answer = "You said 250 ms; try `timeout=900 ms` [E1]."

    assert doubts(answer, SEEN, "why 250 ms?") == ()
