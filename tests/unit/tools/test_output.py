"""Clean text and strict JSON."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.output import NotStrictJson, clean_text, clean_value, to_json, weight


@pytest.mark.parametrize(
    ("hostile", "clean"),
    [
        ("plain é 漢 😀\n\ttext", "plain é 漢 😀\n\ttext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link", "link"),
        ("over\rwritten", "overwritten"),
        ("nul\x00", "nul"),
        ("lone\ud800surrogate", "lonesurrogate"),
        ("sk\u200b-live", "sk-live"),
        ("\u202eevil\u2066", "evil"),
        ("tag\U000e0041s", "tags"),
        ("line\u2028sep\x85", "linesep"),
        ("\x9b31mc1", "31mc1"),
    ],
)
def test_control_and_invisible_characters_are_removed(hostile: str, clean: str) -> None:
    assert clean_text(hostile) == clean


@given(st.text())
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once
    once.encode()


@given(st.text(st.sampled_from("\x1b[]0;m\\\x07ab\u200b\ud800"), max_size=30))
def test_no_escape_sequence_survives_any_nesting(text: str) -> None:
    clean = clean_text(text)
    assert "\x1b" not in clean
    assert orjson.loads(to_json(clean)) == clean


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), b"x", {1}, [float("nan")]])
def test_a_value_without_a_json_form_is_refused(value: object) -> None:
    with pytest.raises(NotStrictJson):
        clean_value(value)


def test_too_deep_a_value_is_refused() -> None:
    value: object = 1
    for _ in range(500):
        value = [value]
    with pytest.raises(NotStrictJson, match="deep"):
        clean_value(value)


def test_an_integer_beyond_64_bits_is_refused() -> None:
    with pytest.raises(NotStrictJson):
        to_json(2**70)


def test_keys_are_cleaned_too() -> None:
    assert clean_value({"a\x00": ("b\x1b[0m",)}) == {"a": ["b"]}


def test_weighing_stops_at_the_limit() -> None:
    assert weight(["x" * 10] * 1_000_000, 100) < 100 + 8_000_100
    assert weight({"a": ["xyz", 5]}, 100) == 8 + 16 + 3
