"""JSON of other systems is read in any encoding that JSON may have."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter, ValidationError

from tools.outside_json import parse

ANY = TypeAdapter[JsonValue](JsonValue)
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.dictionaries(TEXTS, TEXTS | st.integers(-9, 9) | st.none(), max_size=3)


@given(VALUES, st.sampled_from(ENCODINGS))
def test_a_body_is_read_in_each_encoding(value: dict[str, JsonValue], encoding: str) -> None:
    assert parse(ANY, json.dumps(value, ensure_ascii=False).encode(encoding)) == value


def test_a_text_may_begin_with_a_byte_order_mark() -> None:
    assert parse(ANY, '\ufeff{"product": "checkout"}') == {"product": "checkout"}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_half_a_character_is_a_question_mark_in_each_encoding(encoding: str) -> None:
    assert parse(ANY, '{"a": "\\ud800é"}'.encode(encoding)) == {"a": "?é"}


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00\x00\x00", b"\xff\xfe{", b"<html>", "\ufeff"]
)
def test_what_is_no_json_is_still_refused(body: bytes | str) -> None:
    with pytest.raises(ValidationError):
        parse(ANY, body)
