"""Redacted JSON is JSON, with the same values but for those that were masked."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.privacy.redactor import TextRedactor
from bot.store.sealing import Sealing
from tools.redactor import redacted_json

REDACTOR = TextRedactor([], b"k" * 32)
# What an escape ends with, before what a rule looks for.
ESCAPED = st.sampled_from(["\n", "\t", "\r", "\b", "\f", "\\", '"', "/", "\x01", "\x7f", "é", ""])
FOUND = st.sampled_from(["@evil.com", "bob@evil.com", "AKIAIOSFODNN7EXAMPLE", "10.1.2.3", "ok"])
TEXTS = st.lists(st.tuples(ESCAPED, FOUND), max_size=3).map(
    lambda parts: "".join(escaped + found for escaped, found in parts)
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    TEXTS | st.integers(-9, 9) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=3))
def test_redacted_json_has_its_values_redacted_and_nothing_else(
    value: dict[str, JsonValue],
) -> None:
    text = orjson.dumps(value).decode()

    assert orjson.loads(redacted_json(text, REDACTOR)) == REDACTOR.redact_value(value)


@pytest.mark.parametrize(
    "value", ["\n@evil.com", "a\n@evil.com", "\t@evil.com\n", "\\n@evil.com", "C:\\new@evil"]
)
def test_an_escape_before_an_address_stays_whole(value: str) -> None:
    text = orjson.dumps({"line": value}).decode()

    found = orjson.loads(redacted_json(text, REDACTOR))["line"]

    assert found == REDACTOR.redact(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"bob@evil.com","a":"x"}',
        '{"password":"hunter2hunter2","password":""}',
        '[{"b":{"a":"bob@evil.com" , "a":null}}]',
        '{"a":"bob\\u0040evil.com","a":"x"}',
        '{"a":"bob@evil.com","\\u0061":"x"}',
    ],
)
def test_a_value_that_another_one_hides_is_not_kept(text: str) -> None:
    found = redacted_json(text, REDACTOR)

    assert orjson.loads(found) == orjson.loads(text)
    assert not any(hidden in found for hidden in ("bob", "hunter2"))


@pytest.mark.parametrize(
    "text", ['{"a": 1.50, "b": [1e3]}', ' {"a":"x"}\n', "[123456789012345678901234567890]", '"x"']
)
def test_json_without_a_secret_stays_as_it_was_written(text: str) -> None:
    assert redacted_json(text, REDACTOR) == text


@pytest.mark.parametrize(
    "text", [' {"line":"\\n@evil.com"}', '\n["\\n@evil.com"]', '"\\n@evil.com"']
)
def test_json_with_blanks_around_it_and_a_text_of_json_stay_whole(text: str) -> None:
    assert orjson.loads(redacted_json(text, REDACTOR)) == orjson.loads(text)


@pytest.mark.parametrize("text", ["{", '{"a": "bob@evil.com"', "[bob@evil.com]", "bob@evil.com"])
def test_what_is_no_json_is_redacted_as_text(text: str) -> None:
    assert redacted_json(text, REDACTOR) == REDACTOR.redact(text)


@pytest.mark.parametrize(
    "value", ["\n@evil.com", "a\\n@evil.com", "\t10.1.2.3\u2028", 'a"\\@evil.com']
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_json_within_a_text_of_json_stays_json(value: str, depth: int) -> None:
    inner = orjson.dumps([value]).decode()
    for _ in range(depth):
        inner = orjson.dumps({"body": inner}).decode()

    found: JsonValue = REDACTOR.redact_value({"outcome": inner})
    for name in ("outcome", *["body"] * depth):
        assert isinstance(found, dict)
        found = orjson.loads(str(found[name]))

    assert found == [REDACTOR.redact(value)]


LINES = st.lists(st.dictionaries(TEXTS, VALUES, max_size=2), min_size=1, max_size=4)


@given(LINES, st.sampled_from(["", "\n", "\n\n"]), st.sampled_from(["", '{"cut": "off\\n@evil.c']))
def test_each_line_of_json_by_line_stays_json(
    values: list[dict[str, JsonValue]], blank: str, cut: str
) -> None:
    text = "\n".join(orjson.dumps(value).decode() for value in [{"n": 1}, *values])
    text += f"{blank}\n{cut}" if cut else blank

    for found in (redacted_json(text, REDACTOR), REDACTOR.redact_value({"body": text})):
        body = found["body"] if isinstance(found, dict) else found
        lines = [line for line in str(body).split("\n") if line]
        whole = lines[:-1] if cut else lines
        assert [orjson.loads(line) for line in whole] == [
            {"n": 1},
            *map(REDACTOR.redact_value, values),
        ]


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        ("18446744073709551617", 2**64 + 1),
        ("-Infinity", float("-inf")),
        ('"\\ud800"', "?"),
        ('"x\\n@evil.com"', "x\n@evil.com"),
    ],
)
def test_json_that_only_python_reads_has_its_values_redacted(odd: str, kept: JsonValue) -> None:
    text = f'{{"odd": {odd}, "mail": "bob@evil.com\\n@evil.com", "b": 1e999}}'

    found = json.loads(redacted_json(text, REDACTOR))

    assert found == {
        "odd": REDACTOR.redact(kept) if isinstance(kept, str) else kept,
        "mail": REDACTOR.redact("bob@evil.com\n@evil.com"),
        "b": float("inf"),
    }


def test_json_behind_a_byte_order_mark_stays_json() -> None:
    found = redacted_json('\ufeff{"line":"\\n@evil.com bob@evil.com"}', REDACTOR)

    assert found.startswith("\ufeff")
    assert orjson.loads(found[1:]) == {"line": REDACTOR.redact("\n@evil.com bob@evil.com")}


@pytest.mark.parametrize("value", ["\n@evil.com", "\\n@evil.com", "bob@evil.com\n@evil.com"])
def test_json_that_a_row_holds_stays_json(value: str) -> None:
    sealing = Sealing(redactor=REDACTOR)
    row = sealing.line(sealing.body({"line": value}))

    assert orjson.loads(sealing.line(row)) == {"line": REDACTOR.redact(value)}


@pytest.mark.parametrize("depth", [400, 1000, 1020, 1500, 100_000])
def test_json_that_is_nested_too_deep_is_redacted_as_text(depth: int) -> None:
    secret = "AKIA" + "Q3EGRIZTZ6XXYXQ7"
    text = "[" * depth + f'"{secret}"' + "]" * depth
    assert secret not in redacted_json(text, REDACTOR)
