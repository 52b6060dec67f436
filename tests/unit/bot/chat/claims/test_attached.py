"""A figure from an attached file alone does not count as measured."""

from dataclasses import replace

import pytest

from bot.chat.claims.answer import checked
from bot.domain.claims import ClaimState
from bot.domain.turn_events import Evidence

FILE = Evidence(
    1, "file-1", "core__read_attachment", "attached app.log: 9 lines", True, 1, False,
    '{"name":"app.log","text":"pool exhausted after 3417 ms, p99 1.8 s"}',
)  # fmt: skip
MEASURED = Evidence(
    2, "c2", "core__get_metrics", "p99 of checkout", True, 1, False,
    '{"unit":"s","product":"checkout","stats":{"max":1.8}}',
)  # fmt: skip


def judged(text: str, *evidence: Evidence) -> tuple[str, list[ClaimState]]:
    marked, claims = checked(text, evidence or (FILE, MEASURED), {}, "why is checkout slow?")
    return marked, [claim.state for claim in claims]


@pytest.mark.parametrize(
    "text",
    [
        "It waited 3417 ms [E1].",
        "It waited 3417 ms.",
        "It waited 3417 ms [E1, E2].",
        "p99 is 1.8 s [E1].",
        "The pool ran out because of file descriptors at 3417 ms [E1].",
        "It waited 3417 ms [E1]. So the wait was 3417 ms.",
        "After the new version was uploaded it waited 3417 ms [E1].",
        "With the disk attached it waited 3417 ms [E1].",
        "The attached file system waited 3417 ms [E1].",
        "In the file system it waited 3417 ms [E1].",
    ],
)
def test_a_figure_only_in_the_file_is_marked_as_the_files(text: str) -> None:
    marked, states = judged(text)

    assert set(states) == {ClaimState.UNCHECKED}
    assert marked.count("(from the attached file)") == len(states)


@pytest.mark.parametrize("text", ["p99 is 1.8 s [E2].", "p99 is 1.8 s [E1, E2].", "p99 is 1.8 s."])
def test_a_figure_also_measured_has_no_mark(text: str) -> None:
    assert judged(text) == (text, [ClaimState.UNCHECKED])


@pytest.mark.parametrize(
    "text",
    [
        "In the attached log it waited 3417 ms [E1].",
        "The attached `app.log` says 3417 ms [E1].",
        "In the file it waited 3417 ms [E1].",
        "By your attachment it waited 3417 ms [E1].",
    ],
)
def test_a_figure_already_attributed_to_the_file_has_no_second_mark(text: str) -> None:
    assert judged(text) == (text, [ClaimState.UNCHECKED])


def test_a_cause_supported_only_by_the_file_is_marked() -> None:
    _, states = judged("It is slow because the pool is exhausted [E1].")

    assert states == [ClaimState.UNCHECKED]


def test_a_figure_in_neither_source_is_marked_as_unsupported() -> None:
    marked, states = judged("It waited 99 ms [E1].")

    assert states == [ClaimState.CONTRADICTED]
    assert "⚠" in marked


def test_a_file_that_claims_to_be_a_metric_is_a_file() -> None:
    posing = replace(FILE, content='{"unit":"s","product":"checkout","stats":{"max":9.9}}')

    _, states = judged("p99 is 9.9 s [E1].", posing, MEASURED)

    assert states == [ClaimState.UNCHECKED]


def test_a_file_alone_supports_nothing() -> None:
    _, states = judged("It waited 3417 ms [E1]. It waited 3417 ms.", FILE)

    assert set(states) == {ClaimState.UNCHECKED}
