"""Arguments sent as JSON text equal those without, if the schema accepts no text."""

from typing import Annotated

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from bot.actions.params import ParamsSchema
from tests.fakes.tools import contract
from tools.admission import parsed_arguments
from tools.contract import ToolInput
from tools.encoded_json import decoded
from tools.failure import CallFailed


class Inner(ToolInput):
    """A nested object."""

    host: str
    ports: list[int] = Field(default_factory=list)


class Outer(ToolInput):
    """Every kind of argument."""

    text: str = ""
    one: Inner | None = None
    several: Annotated[list[Inner], Field(default_factory=list)]
    free: Annotated[dict[str, JsonValue], Field(default_factory=dict)]


CONTRACT = contract(input=Outer)
INNER = st.fixed_dictionaries(
    {"host": st.text('ab{["1', max_size=5), "ports": st.lists(st.integers(0, 9))}
)
FREE = st.dictionaries(
    st.sampled_from("abc"), st.text('ab{["1', max_size=5) | st.integers(0, 9), max_size=3
)


def text_of(value: object) -> str:
    return orjson.dumps(value).decode()


@given(INNER, st.lists(INNER, max_size=2), FREE, st.sets(st.sampled_from("otsfi")))
def test_any_object_or_list_may_be_sent_as_text(
    one: dict[str, JsonValue], several: list[JsonValue], free: dict[str, JsonValue], where: set[str]
) -> None:
    plain = {"text": "[1]", "one": one, "several": several, "free": free}
    as_text = {
        False: lambda value: value,
        True: text_of,
    }
    inner = {**one, "ports": as_text["i" in where](one["ports"])}
    sent = {
        "text": "[1]",
        "one": as_text["o" in where](inner),
        "several": as_text["s" in where](several),
        "free": as_text["f" in where](free),
    }
    arguments = text_of(as_text["t" in where](sent))

    assert parsed_arguments(CONTRACT, arguments) == Outer.model_validate(plain)


@pytest.mark.parametrize(
    "arguments",
    [
        '"not json"',
        '"[]"',
        '"3"',
        text_of(text_of(text_of({"text": "a"}))),
        '{"one": "[1]"}',
        '{"one": "{\\"host\\": 3}"}',
        '{"several": "{}"}',
        '{"several": "["}',
        '{"free": "NaN"}',
        '{"text": {"a": 1}}',
        '{"one": "' + "[" * 300 + '"}',
    ],
)
def test_text_with_another_value_is_refused(arguments: str) -> None:
    with pytest.raises(CallFailed):
        parsed_arguments(CONTRACT, arguments)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": ["object", "string"]}, '{"a": 1}', '{"a": 1}'),
        ({"type": ["object", "null"]}, '{"a": 1}', {"a": 1}),
        ({}, '{"a": 1}', '{"a": 1}'),
        ({"type": "array", "items": {"type": "object"}}, '["{}", "x"]', [{}, "x"]),
        ({"type": "object"}, "{}" * 2, "{}{}"),
    ],
)
def test_only_a_field_that_accepts_no_text_is_decoded(
    schema: JsonValue, value: JsonValue, expected: JsonValue
) -> None:
    assert decoded(value, schema) == expected


def test_parameters_of_an_action_are_decoded_by_the_operators_schema() -> None:
    schema = ParamsSchema(
        {
            "properties": {
                "target": {"type": "object", "properties": {"hosts": {"type": "array"}}},
                "note": {"type": "string"},
            }
        }
    )
    sent: dict[str, JsonValue] = {"target": '{"hosts": "[\\"web-1\\"]"}', "note": "[1]"}

    found = schema.decoded(sent)

    assert found == {"target": {"hosts": ["web-1"]}, "note": "[1]"}
    assert schema.problems(found) == []
