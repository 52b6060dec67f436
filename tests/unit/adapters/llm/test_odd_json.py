"""Invalid JSON is read for what it means, at a bounded cost."""

import json
import math

import pytest

from adapters.llm import wire_json
from adapters.llm.wire_json import arguments_object, arguments_text, dump, parse
from tests.pace import spending


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": "\\ud800"}', {"a": "\ufffd"}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": "\x01"}', {"a": "\x01"}),
        (b'{"\\udc00": 1, "a": 18446744073709551616}', {"\ufffd": 1, "a": 2.0**64}),
    ],
)
def test_malformed_json_is_repaired(text: bytes, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("written", ["NaN", "-Infinity", "1e999", "9" * 5000, "[" * 99 + "]" * 99])
def test_arguments_that_json_cannot_express_are_refused(written: str) -> None:
    arguments = arguments_text(wire_json.read_malformed(f'{{"a": {written}}}'))
    with pytest.raises(ValueError, match="NaN"):
        json.loads(arguments, parse_constant=_refused)


def _refused(word: str) -> None:
    raise ValueError(word)


@pytest.mark.parametrize("text", [b"{", b'{"a": ', b"hello", b"[" * 5000, b'"\\"' * 5000, b""])
def test_text_without_a_value_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of its kinds
        parse(text)


@pytest.mark.parametrize("piece", [b"[", b'{"a":', b'"\\"', b"\\", b"9", b'"a",', b"\xff"])
def test_parsing_time_grows_linearly(piece: bytes) -> None:
    with spending() as spent, pytest.raises(ValueError):  # noqa: PT011 - any of its kinds
        parse(b"[" + piece * (500_000 // len(piece)))
    assert spent.pieces < 40


def test_a_request_with_any_value_is_written() -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    written = json.loads(dump({"a": math.nan, "b": 2**70, "c": "\ud800", "d": deep, "e": "kept"}))
    assert written["a"] is None
    assert (written["b"], written["c"], written["e"]) == (2.0**70, "\ufffd", "kept")


@pytest.mark.parametrize("text", ["[1]", "5", "{", '{"a": "\\ud800"}', '{"a": NaN}', "", "{}"])
def test_arguments_that_are_not_an_object_become_an_empty_one(text: str) -> None:
    assert arguments_object(text) == {}


def test_an_impossible_count_is_ignored() -> None:
    counts = [0, 7, 3.0, 2**40, -1, 0.5, math.inf, math.nan, True, "3"]
    assert [wire_json.as_int(each) for each in counts] == [0, 7, 3, *[None] * 7]
