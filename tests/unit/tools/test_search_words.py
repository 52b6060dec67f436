"""Text as words: the same for every form of a word, and never anything but words."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.search_words import MAX_WORDS, document, merged, month_labels, product_label, words_of


@pytest.mark.parametrize(
    "forms",
    [
        ["deploy", "deploys", "deployed", "deploying", "Deploy's"],
        ["cache", "caches", "cached", "caching"],
        ["stop", "stops", "stopped", "stopping"],
        ["crash", "crashes", "crashed"],
        ["retry", "retries"],
        ["échoué", "echoue", "ÉCHOUÉ"],
    ],
)
def test_forms_of_a_word_are_one_word(forms: list[str]) -> None:
    assert len({words_of(form)[0] for form in forms}) == 1


@pytest.mark.parametrize(("one", "other"), [("access", "acces"), ("bus", "bu"), ("string", "str")])
def test_different_words_stay_different(one: str, other: str) -> None:
    assert words_of(one) != words_of(other)


@given(st.text(max_size=200))
def test_a_word_contains_only_letters_and_digits(text: str) -> None:
    assert all(re.fullmatch(r"[^\W_]+", word) for word in words_of(text))


@given(st.text(max_size=100))
def test_words_of_words_are_equal(text: str) -> None:
    stored = set(document([text], []).split())
    assert set(words_of(text)) <= stored


@given(st.text(max_size=20), st.text(max_size=20))
def test_different_products_have_different_labels(one: str, other: str) -> None:
    assert (product_label(one) == product_label(other)) == (one.casefold() == other.casefold())


def test_a_long_document_is_cut() -> None:
    assert len(document([" ".join(f"w{n}" for n in range(5000))], ["_x"]).split()) == MAX_WORDS + 1


def test_months_are_counted_over_a_new_year() -> None:
    start, end = datetime(2025, 11, 30, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    assert month_labels(start, end) == ["_m202511", "_m202512", "_m202601", "_m202602"]


@pytest.mark.parametrize("letter", ["a", "\u65e5", "\ud800"])
def test_a_long_name_has_a_unique_short_label(letter: str) -> None:
    label, other = product_label(letter * 3_000), product_label(letter * 3_001)

    assert label != other
    assert max(map(len, (label, other))) <= 256
    assert label == product_label(letter.upper() * 3_000)


def test_the_newest_of_very_many_labels_stay() -> None:
    words = ""
    for number in range(150):
        words = merged(words, document(["pool"], [product_label(f"p{number}")]), "pool")

    assert len(words.split()) == 101
    assert product_label("p149") in words.split()
