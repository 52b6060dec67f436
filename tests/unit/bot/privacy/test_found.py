"""A secret found by its place is masked everywhere from then on, in its session alone."""

from collections.abc import Callable

import pytest

from bot.privacy.redactor import TextRedactor
from bot.privacy.session_memory import SECRETS_PER_SESSION, FoundSecrets, Placeholders

SECRET = "dipPr179Gg7x"


@pytest.fixture
def redactor() -> TextRedactor:
    return TextRedactor([], b"key")


def test_a_found_secret_is_masked_later_in_its_text(redactor: TextRedactor) -> None:
    redacted = redactor.redact(f"DB_PASSWORD={SECRET}\nlogin with {SECRET} failed, {SECRET}")

    assert SECRET not in redacted
    assert redacted.endswith("failed, " + redacted.rpartition(" ")[2])


def test_text_before_its_place_is_shown_while_it_streams(redactor: TextRedactor) -> None:
    assert redactor.redact(f"{SECRET} and password={SECRET}").startswith(f"{SECRET} and")


def in_a_text(redactor: TextRedactor) -> None:
    redactor.redact(f"password: {SECRET}")


def in_a_field(redactor: TextRedactor) -> None:
    redactor.redact_value({"password": SECRET})


@pytest.mark.parametrize("find", [in_a_text, in_a_field])
def test_a_found_secret_is_masked_in_later_texts_of_its_session_only(
    redactor: TextRedactor, find: Callable[[TextRedactor], None]
) -> None:
    sessions = Placeholders()
    with sessions.within("a thread"):
        find(redactor)
        assert SECRET not in redactor.redact(f"later {SECRET} bare")
        assert SECRET not in redactor.redact_for_people(f"later {SECRET} bare")
    with sessions.within("another"):
        assert redactor.redact(f"later {SECRET} bare") == f"later {SECRET} bare"
    assert redactor.redact(f"later {SECRET} bare") == f"later {SECRET} bare"


@pytest.mark.parametrize("word", ["letmein", "checkout", "checkout-api-v2", "true"])
def test_a_word_is_not_remembered(redactor: TextRedactor, word: str) -> None:
    with Placeholders().within("a thread"):
        redactor.redact(f'password="{word}"')

        assert redactor.redact(f"the {word} pods") == f"the {word} pods"


def test_the_found_secrets_of_a_session_are_limited() -> None:
    found = FoundSecrets()
    values = [f"Secret{n}xY".encode() for n in range(SECRETS_PER_SESSION + 1)]
    found.remember("a", values)

    assert [*found.spans("a", values[0])] == []
    assert [*found.spans("a", values[-1])] == [(0, len(values[-1]))]


def test_a_new_generation_shows_that_a_secret_was_found() -> None:
    found = FoundSecrets()
    values = [f"Secret{n}xY".encode() for n in range(SECRETS_PER_SESSION + 1)]
    numbers = [found.learned]
    for each in values:
        found.remember("a", [each])
        numbers.append(found.learned)
    assert len(set(numbers)) == len(numbers)

    found.remember("a", values[-1:])
    found.remember("a", [b"true"])
    found.remember("", [b"Another7xY"])

    assert found.learned == numbers[-1]
