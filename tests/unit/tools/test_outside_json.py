"""JSON of other systems is read in any encoding that JSON may have."""

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter, ValidationError

from tools.analysis.cluster.fields import instant_at
from tools.outside_json import parse, set_instant
from tools.timerange import instant_text

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
def test_a_lone_surrogate_is_a_question_mark_in_each_encoding(encoding: str) -> None:
    assert parse(ANY, '{"a": "\\ud800é"}'.encode(encoding)) == {"a": "?é"}


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00\x00\x00", b"\xff\xfe{", b"<html>", "\ufeff"]
)
def test_invalid_json_is_refused(body: bytes | str) -> None:
    with pytest.raises(ValidationError):
        parse(ANY, body)


@pytest.mark.parametrize(
    "unset",
    [
        "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z",
        "1970-01-01T01:00:00+01:00", "1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59-23:59",
        "9999-12-31T00:00:00Z",
    ],
)  # fmt: skip
def test_an_unset_instant_is_ignored(unset: str) -> None:
    assert set_instant(datetime.fromisoformat(unset)) is None
    assert instant_at({"at": unset}, "at") is None


@pytest.mark.parametrize("text", ["1970-01-01T00:00:01Z", "9999-12-30T23:59:59Z"])
def test_every_set_instant_can_be_written_in_utc(text: str) -> None:
    found = set_instant(datetime.fromisoformat(text))
    assert found is not None
    assert instant_text(found)
