"""Streamed text follows the rules of whole text: what is shown early is the beginning of the whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.privacy.redactor import TextRedactor, settled, showable
from tests import redaction_corpus

CONFIGURED = "a-configured-secret"
REDACTOR = TextRedactor([CONFIGURED], b"key")
SECRETS = [r.text for r in redaction_corpus.own() if r.kind == "positive"]
CALM = [r.text for r in redaction_corpus.own() if r.kind == "negative"]
TEXTS = st.lists(
    st.sampled_from(
        [
            *SECRETS,
            *CALM,
            CONFIGURED,
            "pass\u200bword: a1 b2",
            "so it goes",
            "the",
            "4111",
            "DE89",
            "\n",
        ]
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from([" ", "\n", " then "]), st.data())
def test_text_shown_early_is_the_beginning_of_the_whole(
    parts: list[str], between: str, data: st.DataObject
) -> None:
    text = between.join(parts)
    cut = data.draw(st.integers(0, len(text)))
    early = text[:cut]

    assert REDACTOR.redact(text).startswith(REDACTOR.redact(early[: settled(early)]).rstrip())


@pytest.mark.parametrize("row", [r for r in redaction_corpus.own() if r.kind == "positive"])
def test_no_moment_shows_a_piece_of_a_secret(row: redaction_corpus.Row) -> None:
    whole = REDACTOR.redact(row.text + " end")

    shown = [row.text[:cut][: settled(row.text[:cut])] for cut in range(len(row.text) + 1)]
    assert [s for s in shown if not whole.startswith(REDACTOR.redact(s).rstrip())] == []


def test_plain_prose_is_shown_word_by_word() -> None:
    text = "The pods of checkout restart because the disk is ful"

    assert text[: settled(text)] == "The pods of checkout restart because the disk is "


@pytest.mark.parametrize(
    ("calm", "word"),
    [
        ("the disk ", "Password"),
        ("the disk ", "my_PASSWORD"),
        ("the disk ", "é-x.y=Passwords"),
        ("the first line\n", "db.password"),
        ("a\u2003", "token"),
        ("a\x1f", "auth-token"),
    ],
)
def test_a_name_waits_with_the_word_that_contains_it(calm: str, word: str) -> None:
    text = f"{calm}{word} is what "

    assert text[: settled(text)] == calm


def test_only_the_beginning_of_a_plain_word_is_shown() -> None:
    assert showable("Checkout fails") == "Checkout fails"
    assert showable("the key of AKIAQ3") == "the "


@pytest.mark.parametrize(
    "text",
    [
        "it says -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc ",
        "Set-Cookie: a=bcdefgh; x=",
        "paid with 4111 1111 ",
        'the password is "correct horse ',
    ],
)
def test_a_possible_secret_is_held_back(text: str) -> None:
    kept = text[: settled(text)]

    assert [w for w in ("MIIE", "bcdefgh", "4111", "correct") if w in kept] == []
