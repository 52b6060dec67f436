"""What a server answered, as data."""

import pytest
from pydantic import JsonValue

from adapters.mcp.answer import Answer, output_of
from tools.errors import UpstreamFailed

ANSWERS: dict[str, tuple[Answer, dict[str, JsonValue]]] = {
    "text": (Answer(("one", "two")), {"text": "one\ntwo"}),
    "JSON in text": (Answer(('{"a": [1]}',)), {"data": {"a": [1]}}),
    "structured beside text": (Answer(('{"a": 1}',), {"a": 1}), {"data": {"a": 1}}),
    "a picture": (Answer(("see",), None, ("image", "image")), {"text": "see", "note": "2 image left out"}),
    "nothing": (Answer(), {}),
    "not quite JSON": (Answer(("[sic] it broke",)), {"text": "[sic] it broke"}),
    "controls": (Answer((), {"a": "x\x1b[31my"}), {"data": {"a": "xy"}}),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_is_converted_to_data(case: str) -> None:
    answer, told = ANSWERS[case]

    assert output_of(answer).model_dump(exclude_none=True) == told


def test_a_long_text_is_cut_and_says_so() -> None:
    output = output_of(Answer(("x" * 20_000,)))

    assert len(output.text or "") == 16_000
    assert output.note == "cut: 20000 characters of text"


def _deep(depth: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(("no such\n ticket",), failed=True), "no such ticket"),
        (Answer((), None, (), failed=True), "without an error"),
        (Answer((), _deep(150)), "nested too deep"),
        (Answer(("[" * 150 + "]" * 150,)), "nested too deep"),
        (Answer((), {"a": float("inf")}), "not a finite number"),
    ],
    ids=["said", "silent", "deep", "deep text", "infinite"],
)
def test_an_unusable_answer_is_the_servers_failure(answer: Answer, words: str) -> None:
    with pytest.raises(UpstreamFailed, match=words):
        output_of(answer)
