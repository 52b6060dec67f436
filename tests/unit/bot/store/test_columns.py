"""Instants and text survive the way to a database and back."""

from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import Message, Role, ToolCall
from bot.store.columns import clean, from_micros, json_text, to_micros
from bot.store.session_rows import to_message

ANY_TEXT = st.text(st.characters())  # with NUL and lone surrogates
STORABLE = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))


@given(ANY_TEXT)
def test_clean_text_can_be_stored(text: str) -> None:
    assert "\x00" not in clean(text)
    assert clean(text).encode("utf-8").decode("utf-8") == clean(text)


@given(STORABLE)
def test_text_that_can_be_stored_is_unchanged(text: str) -> None:
    assert clean(text) == text


@given(ANY_TEXT)
def test_cleaning_again_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def test_unstorable_text_leaves_a_mark() -> None:
    assert clean("a\x00b\ud800c🎉") == "a\ufffdb\ufffdc🎉"


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_keep_their_microseconds(at: datetime) -> None:
    assert from_micros(to_micros(at)) == at


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_instants_keep_their_order(first: datetime, second: datetime) -> None:
    assert (to_micros(first) < to_micros(second)) == (first < second)


def test_an_instant_in_another_zone_is_the_same_instant() -> None:
    at = datetime(2026, 4, 7, 16, 31, tzinfo=timezone(timedelta(hours=2)))
    assert from_micros(to_micros(at)) == datetime(2026, 4, 7, 14, 31, tzinfo=UTC)


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        to_micros(datetime(2026, 4, 7))  # noqa: DTZ001 - the point of the test


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_can_be_written_and_read(value: object) -> None:
    text = json_text(value)
    assert clean(text) == text
    assert json_text(orjson.loads(text)) == text


@given(st.dictionaries(STORABLE, st.integers(0, 9), max_size=6))
def test_equal_values_have_one_text(value: dict[str, int]) -> None:
    backwards = dict(reversed(value.items()))
    assert json_text(value) == json_text(backwards)
    assert orjson.loads(json_text(value)) == value


def test_a_value_without_a_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        json_text({"a": object()})


@given(STORABLE, STORABLE, STORABLE)
def test_a_message_is_read_back_unchanged(text: str, name: str, block: str) -> None:
    message = Message(
        Role.ASSISTANT,
        text,
        (ToolCall("1", name, text), ToolCall("2", text, name)),
        provider="anthropic",
        provider_blocks=(block, text),
    )
    assert to_message(json_text(message)) == message
