"""Schemas and values of strangers: what does not fit is said without the value, in bounded time."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tools.json_schema import MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, JsonSchema, SchemaInvalid

SECRET = "xoxb-canary-1234"


def nested(levels: int, innermost: Any, wrap: Any = lambda inner: [inner]) -> Any:
    for _ in range(levels):
        innermost = wrap(innermost)
    return innermost


def doubled(levels: int) -> Mapping[str, Any]:
    """Each definition applies the next one twice."""
    steps = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "nothing"}, "type: "),
        ({"pattern": "(?=a)b"}, "look-around"),
        ({"pattern": r"(a)\1"}, "back-references"),
        ({"pattern": "(a{900}){900}"}, "RE2 cannot evaluate"),
        ({"pattern": "(" * 1_500}, "RE2 cannot evaluate"),
        ({"patternProperties": {"(?!a)": {}}}, "look-around"),
        ({"properties": {"a": {"items": {"not": {"pattern": "(?<=a)b"}}}}}, "#/properties/a/items/not"),
        ({"$ref": "https://elsewhere.example/s"}, "leads to no schema"),
        ({"$ref": "file:///etc/passwd"}, "leads to no schema"),
        ({"$ref": "#/$defs/none"}, "leads to no schema"),
        ({"$ref": "#/enum/0", "enum": [{"type": "string"}]}, "leads to no schema"),
        ({"$ref": "#"}, "refers to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "refers to itself"),
        ({"properties": {"a": {"$ref": "#"}}}, "refers to itself"),
        ({"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, "refers to itself"),
        ({"$dynamicRef": "#a"}, "$dynamicRef is not supported"),
        ({"properties": {"a": {"$id": "https://elsewhere.example/"}}}, "$id is not supported"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "only Draft 2020-12"),
        ({"items": {"$schema": "http://json-schema.org/draft-04/schema#"}}, "$schema"),
        ({"format": "iri"}, "format iri is not checked"),
        ({"unevaluatedProperties": False, "patternProperties": {"a": {}}}, "exclude each other"),
        ({"enum": ["\ud800"]}, "not valid Unicode"),
        ({"maximum": 2**64}, "64 bits"),
        ({"minimum": float("nan")}, "not finite"),
        (nested(1_500, {}, lambda inner: {"not": inner}), "nested deeper"),
        (nested(MAX_DEPTH + 1, 1), "nested deeper"),
        ({"enum": list(range(100_000))}, "larger than"),
        (doubled(12), "references multiply"),
    ],
)  # fmt: skip
def test_an_unsafe_schema_is_refused_at_load(schema: Any, said: str) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        JsonSchema(schema if isinstance(schema, dict) else {"enum": schema})

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "fits", "broken", "said"),
    [
        ({"type": ["string", "null"]}, "a", [SECRET], "must be of type string or null"),
        ({"required": ["a", "b"]}, {"a": 1, "b": 2}, {"a": SECRET}, "required: b"),
        ({"enum": ["slow"]}, "slow", SECRET, 'must satisfy enum ["slow"]'),
        ({"const": 1}, 1.0, SECRET, "must satisfy const 1"),
        ({"const": 1}, 1, True, "must satisfy const 1"),
        ({"pattern": "^v[0-9]+$"}, "v1", SECRET, 'must satisfy pattern "^v[0-9]+$"'),
        ({"pattern": "b"}, "abc", SECRET.replace("b", "c"), "must satisfy pattern"),
        ({"maxLength": 3}, "abc", SECRET, "must satisfy maxLength 3"),
        ({"properties": {"a": {"minimum": 2}}}, {"a": 2}, {"a": 1}, "a: must satisfy minimum 2"),
        ({"items": {"type": "integer"}}, [1], [1, SECRET], "1: must be of type integer"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {SECRET: 1}, "contains a name"),
        ({"additionalProperties": {"type": "null"}}, {"a": None}, {SECRET: 1}, "?: must be of type null"),
        ({"patternProperties": {"^v": {"type": "null"}}}, {"a": 1}, {f"v{SECRET}": 1}, "?: must be"),
        ({"patternProperties": {"^v": {}}, "additionalProperties": False}, {"v1": 1}, {SECRET: 1}, "contains a name"),
        ({"propertyNames": {"pattern": "^[a-z]$"}}, {"a": 1}, {SECRET: 1}, "must satisfy pattern"),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, {SECRET: 1}, "contains a name"),
        ({"uniqueItems": True}, [1, True, [1], [True]], [{"a": SECRET}, {"a": SECRET}], "contains an item twice"),
        ({"uniqueItems": True}, [0, False], [1, 1.0], "contains an item twice"),
        ({"not": {"type": "string"}}, 1, SECRET, "is what the schema excludes"),
        ({"anyOf": [{"type": "null"}, {"const": 1}]}, None, SECRET, "fits none of the alternatives"),
        ({"properties": {"a": False}}, {}, {"a": SECRET}, "is not allowed"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}}, None, SECRET, "must be of type null"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"pattern": "a"}}, ["a"], ["xyz"], "pattern"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named_and_never_the_value(
    schema: dict[str, Any], fits: object, broken: object, said: str
) -> None:
    compiled = JsonSchema(schema)

    (problem,) = compiled.problems(broken)

    assert compiled.problems(fits) == []
    assert said in problem
    assert SECRET not in problem


@pytest.mark.parametrize(
    ("name", "fits", "broken"),
    [
        ("date-time", "2026-01-31T23:59:59.123z", "2026-02-30T00:00:00Z"),
        ("date-time", "2026-01-31T23:59:59+01:00", "2026-01-31 23:59:59Z"),
        ("date", "2024-02-29", "2023-02-29"),
        ("time", "23:59:59Z", "24:00:00Z"),
        ("duration", "P1DT2H", "P"),
        ("duration", "P2W", "P1DT"),
        ("email", "a@b.example", "a@b@c"),
        ("hostname", "a-b.example", "-a.example"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "::g"),
        ("uuid", "3c9a7f52-0f1e-4a4b-8d7c-1f2e3d4c5b6a", "3c9a7f52"),
        ("uri", "https://a.example/b?c#d", "/b"),
        ("uri", "mailto:a@b.example", "https://a b"),
        ("uri", "https://[::1]:8080/", "https://[::1"),
        ("ours", "anything", 1),
    ],
)
def test_a_format_is_checked(name: str, fits: str, broken: object) -> None:
    compiled = JsonSchema({"type": "string", "format": name})

    assert compiled.problems(fits) == []
    assert compiled.problems(broken) != []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (nested(1_500, 1), "nested deeper"),
        (nested(1_500, 1, lambda inner: {"a": inner}), "nested deeper"),
        (["\udcff"], "not valid Unicode"),
        ({"\ud800": 1}, "not valid Unicode"),
        (2**64, "64 bits"),
        (10**4_000, "64 bits"),
        (float("inf"), "not finite"),
        (list(range(MAX_NODES + 1)), "larger than"),
        ("a" * 10_000_000, "larger than"),
        ({1: "a"}, "must be of type string"),
        (b"a", "not JSON"),
    ],
)
def test_a_value_without_bounds_is_refused(value: object, said: str) -> None:
    (problem,) = JsonSchema({"type": "string"}).problems(value)

    assert said in problem


def test_a_stack_that_is_almost_used_up_is_a_refusal() -> None:
    def at_the_end_of_the_stack(work: Callable[[], object]) -> object:
        try:
            return at_the_end_of_the_stack(work)
        except RecursionError:
            return work()

    compiled = JsonSchema(nested(20, {"type": "string"}, lambda inner: {"items": inner}))

    def load() -> object:
        with pytest.raises(SchemaInvalid) as caught:
            JsonSchema({"type": "string"})
        return str(caught.value)

    assert at_the_end_of_the_stack(lambda: compiled.problems(nested(20, 1))) == ["nested too deep"]
    assert at_the_end_of_the_stack(load) == "nested too deep"


def test_the_number_of_named_problems_is_limited() -> None:
    found = JsonSchema({"items": {"type": "string"}}).problems(list(range(1_000)))

    assert len(found) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 200_000 + "!"),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 200_000 + "!": 1}),
        ({"propertyNames": {"pattern": "(x+x+)+y"}}, {"x" * 200_000: 1}),
        ({"uniqueItems": True}, [{"a": n} for n in range(MAX_NODES // 3)]),
    ],
)  # fmt: skip
def test_a_hostile_value_costs_linear_time(schema: dict[str, Any], value: object) -> None:
    compiled = JsonSchema(schema)
    begun = time.process_time()

    compiled.problems(value)

    assert time.process_time() - begun < 1.0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(categories=None), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc") | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)
LEAF = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "integer", "number", "null"]),
        "enum": st.lists(st.integers(-2, 2) | st.text("ab", max_size=2), min_size=1),
        "pattern": st.sampled_from(["^a", "b$", "[0-9]+", "(a|b)+"]),
        "minimum": st.integers(-2, 2),
        "maxLength": st.integers(0, 3),
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "multipleOf": st.sampled_from([1, 2, 0.5, 1e-300]),
    },
)
SCHEMAS = st.recursive(
    LEAF,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "patternProperties": st.dictionaries(
                st.sampled_from(["^a", "[bc]"]), inner, max_size=2
            ),
            "additionalProperties": inner | st.booleans(),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    ),
    max_leaves=6,
)


@given(SCHEMAS, JSON)
def test_the_check_agrees_with_the_library(schema: dict[str, Any], value: object) -> None:
    problems = JsonSchema(schema).problems(value)
    try:
        judged = orjson.loads(orjson.dumps(value))
    except (TypeError, ValueError):  # not JSON for every reader
        assert len(problems) == 1
        return

    reference = Draft202012Validator(schema)
    assert bool(problems) == (not reference.is_valid(value) or judged != value)


@given(JSON)
def test_any_document_is_a_schema_or_is_refused(document: object) -> None:
    try:
        compiled = JsonSchema({"properties": {"a": document}})  # type: ignore[dict-item]
    except SchemaInvalid:
        return

    assert isinstance(compiled.problems({"a": document}), list)
