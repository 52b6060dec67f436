"""A cursor opens only as it was sealed, for what it was sealed for, while it is fresh."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from tools.cursor import CursorScope, CursorSigner
from tools.errors import InvalidArguments

NOW = datetime(2026, 4, 7, tzinfo=UTC)
SCOPE = CursorScope("core__get_logs", "s1", {"product": "checkout", "level": None})
SIGNER = CursorSigner(b"0123456789abcdef")
POSITION: dict[str, JsonValue] = {"start": 1, "at": "abc"}
positions = st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none())


@given(positions)
def test_a_sealed_position_can_be_opened(position: dict[str, JsonValue]) -> None:
    assert SIGNER.open(SIGNER.seal(position, SCOPE, NOW), SCOPE, NOW) == position


@given(st.data())
def test_any_change_of_one_character_is_refused(data: st.DataObject) -> None:
    sealed = SIGNER.seal(POSITION, SCOPE, NOW)
    at = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda c: c != sealed[at]))
    with pytest.raises(InvalidArguments):
        SIGNER.open(sealed[:at] + other + sealed[at + 1 :], SCOPE, NOW)


@given(st.text())
def test_any_text_is_refused_and_not_echoed(text: str) -> None:
    with pytest.raises(InvalidArguments, match="leave it out"):
        SIGNER.open(text, SCOPE, NOW)


@pytest.mark.parametrize(
    "scope",
    [
        CursorScope("core__other", "s1", SCOPE.query),
        CursorScope("core__get_logs", "s2", SCOPE.query),
        CursorScope("core__get_logs", "s1", {"product": "other", "level": None}),
        CursorScope("core__get_logs", "s1", {"product": "checkout", "level": "error"}),
    ],
)
def test_another_tool_session_or_query_is_refused(scope: CursorScope) -> None:
    with pytest.raises(InvalidArguments):
        SIGNER.open(SIGNER.seal(POSITION, SCOPE, NOW), scope, NOW)


def test_the_order_of_the_query_does_not_matter() -> None:
    turned = CursorScope("core__get_logs", "s1", {"level": None, "product": "checkout"})
    assert SIGNER.open(SIGNER.seal(POSITION, SCOPE, NOW), turned, NOW) == POSITION


def test_another_key_is_refused() -> None:
    with pytest.raises(InvalidArguments):
        CursorSigner(b"x" * 16).open(SIGNER.seal(POSITION, SCOPE, NOW), SCOPE, NOW)


def test_an_old_cursor_is_refused() -> None:
    sealed = SIGNER.seal(POSITION, SCOPE, NOW)
    with pytest.raises(InvalidArguments, match="too old"):
        SIGNER.open(sealed, SCOPE, NOW + timedelta(hours=24))


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        CursorSigner(b"short")
