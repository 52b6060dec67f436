"""Thoughts in a model's answer are hidden, and an answer that mentions them stays whole."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import CompleteRequest, Message, Role, ToolResult
from adapters.llm.thoughts import Thoughts

REQUEST = CompleteRequest("", (Message(Role.USER, "why?"),))
ANSWER = "The pool is full [E1].\n\n- one\n- two"


def shown(
    pieces: Sequence[str], request: CompleteRequest = REQUEST, *, has_calls: bool = False
) -> str:
    thoughts = Thoughts(request)
    text = ""
    for is_void, said in [*map(thoughts.feed, pieces), thoughts.close(has_calls=has_calls)]:
        text = said if is_void else text + said
    return text


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


FORMS = {
    "DeepSeek R1, Qwen3": "<think>\nIt may be the pool.\n</think>\n\n{}",
    "the prompt holds its beginning": "It may be the pool.\n\nSo I say so.\n</think>\n\n{}",
    "its end behind a sentence": "It may be the pool.</think>{}",
    "an empty one": "<think>\n\n</think>\n\n{}",
    "DeepSeek V3.1, without a thought": "</think>{}",
    "another case": "<Thinking>It may be.</Thinking>\n{}",
    "EXAONE": "<thought>\nIt may be.\n</thought>\n\n{}",
    "Granite": "<reasoning>It may be.</reasoning>{}",
    "Seed-OSS": "<seed:think>It may be.</seed:think>{}",
    "Magistral": "[THINK]It may be.[/THINK]{}",
    "Kimi-VL": "◁think▷It may be.◁/think▷{}",
    "Cohere": "<|START_THINKING|>It may be.<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    "gpt-oss": "<|channel|>analysis<|message|>It may be.<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "GLM": "<think>It may be.</think><|begin_of_box|>{}<|end_of_box|>",
    "two": "<think>It may be.</think>\n<think>It is.</think>\n{}",
    "nested": "<think>A <think> begins it.</think>{}",
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_thought_is_never_shown(form: str, size: int) -> None:
    assert shown(cut(FORMS[form].replace("{}", ANSWER), size)) == ANSWER


@pytest.mark.parametrize("size", [1, 1000])
def test_a_thought_within_an_answer_is_removed(size: int) -> None:
    text = "I look.\n<think>It may be.</think>\nThe pool is full."

    assert shown(cut(text, size)) == "I look.\n\nThe pool is full."


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "The template begins with `<think>` and ends with `</think>`.",
        "The log line is '</think>' [E1].",
        "It writes <think> before each answer.",
        "p95 < 5 ms, a<b, [T], [THIN], ◁, <th, <|, <|x|>",
        "The pool is full.",
        "  indented\n",
        "<",
        "",
    ],
)
def test_an_answer_about_tags_is_complete(text: str, size: int) -> None:
    assert shown(cut(text, size)) == text


def test_a_tag_from_a_tool_result_hides_nothing() -> None:
    result = ToolResult("c1", "core__get_logs", "checkout: </think> <think>")
    request = CompleteRequest(
        "", (*REQUEST.messages, Message(Role.TOOL, tool_result=result)), tools=()
    )
    text = "Checkout is down.\nIts log holds\n</think>\nand <think>no more."

    assert shown([text], request) == text


def test_a_thought_without_an_end_is_removed() -> None:
    assert shown(["I look.\n", "<think>It may", " be the"]) == "I look.\n"


def test_text_before_a_lone_end_tag_without_a_call_is_the_answer() -> None:
    assert shown(["The pool is full.\n</think>\n"]).strip() == "The pool is full."


def test_text_before_an_end_tag_and_a_call_is_the_thought() -> None:
    assert shown(["I have to look.\n</think>\n"], has_calls=True).strip() == ""


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<", "[THINK]", "<|end|>", "\n", " ", "`", "text"])
        | st.text(max_size=5),
        max_size=12,
    ),
    st.integers(1, 12),
)
def test_chunk_boundaries_do_not_matter(parts: list[str], size: int) -> None:
    text = "".join(parts)

    assert shown(cut(text, size)) == shown([text])


@given(st.text(max_size=80))
def test_a_text_without_tags_is_unchanged(text: str) -> None:
    assert shown(cut(text, 3)) == text
