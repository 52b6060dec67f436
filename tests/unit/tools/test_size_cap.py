"""For any input, at most the cap comes out: strict JSON, whole elements, and a notice."""

from collections.abc import Mapping

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from tools.call_limits import MAX_RESULT_BYTES
from tools.rendering import CUT_MARK, MIN_CAP_BYTES, capped

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=400)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=60) | st.dictionaries(st.text(max_size=30), inner),
    max_leaves=60,
)
objects = st.dictionaries(st.text(max_size=20), values, max_size=12)


@given(objects, st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_the_cap_always_holds(value: Mapping[str, JsonValue], times: int) -> None:
    wide: dict[str, JsonValue] = {"rows": [dict(value)] * times, **value}
    cut, was_cut = capped(wide, MIN_CAP_BYTES)
    assert len(orjson.dumps(cut)) <= MIN_CAP_BYTES
    assert was_cut == (len(orjson.dumps(wide)) > MIN_CAP_BYTES)
    assert not was_cut or cut["truncated"] is True


@given(st.lists(st.text(max_size=200), min_size=1, max_size=400), st.text(max_size=20))
@settings(deadline=None)
def test_a_list_keeps_whole_elements_from_its_front(rows: list[str], cursor: str) -> None:
    value: dict[str, JsonValue] = {"lines": list(rows), "next_cursor": cursor}
    cut, _ = capped(value, MIN_CAP_BYTES)
    lines, omitted = cut["lines"], cut.get("omitted", {})
    assert isinstance(lines, list)
    assert isinstance(omitted, dict)
    assert lines == rows[: len(lines)]
    assert len(lines) + int(str(omitted.get("lines", 0))) == len(rows)
    assert cut["next_cursor"] == cursor


def test_a_value_within_the_cap_is_unchanged() -> None:
    value: dict[str, JsonValue] = {"lines": ["a"], "truncated": False}
    assert capped(value) == (value, False)


def test_the_argument_is_not_mutated() -> None:
    rows: list[JsonValue] = ["x" * 1000 for _ in range(100)]
    capped({"rows": rows})
    assert len(rows) == 100


def test_a_giant_text_is_cut_and_its_neighbours_stay() -> None:
    cut, _ = capped({"lines": ["a", "é" * 1_000_000, "b"]})
    lines = cut["lines"]
    assert isinstance(lines, list)
    assert (lines[0], lines[2]) == ("a", "b")
    assert str(lines[1]).endswith(CUT_MARK)


@pytest.mark.parametrize("text", ["\\" * 500_000, '"' * 500_000, "\n" * 500_000, "😀" * 200_000])
def test_a_text_that_grows_when_escaped_fits_too(text: str) -> None:
    cut, _ = capped({"a": text, "b": text})
    assert len(orjson.dumps(cut)) <= MAX_RESULT_BYTES


def test_an_object_of_a_million_fields_loses_fields_and_says_how_many() -> None:
    cut, _ = capped({"kind": "x", "labels": {f"k{n}": n for n in range(200_000)}})
    labels, omitted = cut["labels"], cut["omitted"]
    assert isinstance(labels, dict)
    assert isinstance(omitted, dict)
    assert len(labels) + int(str(omitted["labels"])) == 200_000


def test_a_giant_cursor_cannot_break_the_cap() -> None:
    cut, _ = capped({"lines": [], "next_cursor": "x" * 1_000_000})
    assert len(orjson.dumps(cut)) <= MAX_RESULT_BYTES


def test_the_same_value_is_cut_the_same_way() -> None:
    value: dict[str, JsonValue] = {"a": ["x" * 50] * 2000, "b": ["y" * 50] * 2000}
    assert orjson.dumps(capped(value)[0]) == orjson.dumps(capped(value)[0])


def test_a_cap_too_small_for_a_notice_is_refused() -> None:
    with pytest.raises(ValueError, match="4 KiB"):
        capped({}, 100)
