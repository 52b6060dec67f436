"""Of the results of earlier turns the newest go along, and what goes along moves in steps."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.first_look.digest import as_read
from adapters.llm.messages import Message, Role, ToolCall, ToolResult
from bot.chat.history import MOST_TOKENS, fold_earlier
from bot.chat.window import BYTES_PER_TOKEN, FOLDED
from tests.fixtures_first_look import LOGS, METRICS, asked, looked, results
from tools.attached import READ_ATTACHMENT
from tools.contract import PROPOSE_TOOL_ID

MOST = round(MOST_TOKENS * BYTES_PER_TOKEN)

Turn = Sequence[Message]


def _turn(size: int, tool: str = "core__get_logs", letter: str = "x") -> Turn:
    call = ToolCall("c", tool, "{}")
    return (
        Message(Role.USER, text="why?"),
        Message(Role.ASSISTANT, tool_calls=(call,)),
        Message(Role.TOOL, tool_result=ToolResult(call.id, tool, letter * size)),
        Message(Role.ASSISTANT, text="the pool [E1]"),
    )


def _raw(turns: Sequence[Turn]) -> list[int]:
    found = [m.tool_result.content for turn in turns for m in turn if m.tool_result]
    return [0 if content == FOLDED else len(content) for content in found]


def test_few_results_are_all_included() -> None:
    turns = [_turn(MOST // 2), _turn(MOST // 2)]

    assert fold_earlier(turns) == (turns, False)


def test_the_oldest_results_are_folded_until_half_is_left_and_every_answer_stays() -> None:
    turns = [_turn(MOST // 4) for _ in range(5)]

    short, _ = fold_earlier(turns)

    assert _raw(short) == [0, 0, 0, MOST // 4, MOST // 4]
    assert [m.text for turn in short for m in turn] == [m.text for turn in turns for m in turn]


def test_the_newest_result_is_included_at_any_size() -> None:
    assert _raw(fold_earlier([_turn(10), _turn(9 * MOST)])[0]) == [10, 9 * MOST]
    assert _raw(fold_earlier([_turn(500), _turn(9 * MOST), _turn(20)])[0]) == [0, 0, 20]


def test_multi_byte_characters_count_by_bytes() -> None:
    turns = [_turn(1, "core__get_logs", "\u65e5" * (MOST // 6)) for _ in range(3)]

    assert [m.tool_result.content == FOLDED for t in fold_earlier(turns)[0] for m in t if m.tool_result] == [
        True, True, False,
    ]  # fmt: skip


@given(st.lists(st.integers(0, MOST + 1000), max_size=12))
def test_the_included_results_are_limited_and_start_at_a_stable_point(
    sizes: list[int],
) -> None:
    turns = [_turn(size) for size in sizes]
    sent = [fold_earlier(turns[:count])[0] for count in range(len(turns) + 1)]

    for now in sent:
        assert sum(_raw(now)[:-1]) <= MOST
    for before, now in pairwise(sent):
        is_step = sum(_raw(now)[:-1]) <= MOST // 2
        assert is_step or list(now[: len(before)]) == list(before)


def test_folding_begins_once() -> None:
    turns = [_turn(MOST // 2) for _ in range(9)]

    assert [fold_earlier(turns[:count])[1] for count in range(6)] == [
        False, False, False, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("tool", [READ_ATTACHMENT, PROPOSE_TOOL_ID])
def test_a_result_that_cannot_be_read_again_stays(tool: str) -> None:
    turns = [_turn(500, tool), _turn(MOST, tool), _turn(MOST), _turn(MOST)]

    assert _raw(fold_earlier(turns)[0]) == [500, MOST, 0, MOST]


def test_a_first_look_counts_with_the_size_of_its_digest() -> None:
    sick = {"shifts": [{"product": f"p{n}", "signal": "latency"} for n in range(2_000)]}
    look = looked({METRICS: sick, LOGS: {}}).messages

    assert fold_earlier([look] * 5) == ([look] * 5, False)


def test_a_folded_look_is_read_as_folded() -> None:
    look = looked({METRICS: {"shifts": ["x" * 5_000]}, LOGS: {"changes": ["x" * 5_000]}}).messages
    (short, *_), _ = fold_earlier([look, _turn(MOST), _turn(10)])

    read = results(as_read(asked(messages=(*short, Message(Role.USER, text="and now?")))))

    assert read[METRICS]["folded"] is True
    assert read[LOGS]["folded"] is True
