"""A text that passed is not searched again, and this shows nothing that would else be masked."""

from hypothesis import given
from hypothesis import strategies as st

from bot.privacy.detector import detector
from bot.privacy.matching import literal_filter
from bot.privacy.passed import REMEMBERED, PassedTexts
from bot.privacy.redactor import TextRedactor
from bot.privacy.session_memory import Placeholders

SECRET = "dipPr179Gg7x"
CONFIGURED = "Zq8xLm51-plain-Vq7"
REDACTOR = TextRedactor([CONFIGURED], b"key")
PIECES = st.sampled_from(
    ["password=", SECRET, CONFIGURED, "a@b.example", "\ud800", "?", "\u200b", "ghp_", " ", "é", "=", "\n"]
)  # fmt: skip


def test_a_secret_found_later_is_masked_in_an_earlier_clean_text() -> None:
    with Placeholders().within("a thread"):
        before = REDACTOR.redact(f"it says {SECRET}")
        REDACTOR.redact(f"password={SECRET}")

        assert before == f"it says {SECRET}"
        assert SECRET not in REDACTOR.redact(f"it says {SECRET}")


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_used_redactor_agrees_with_a_new_one(text: str) -> None:
    assert REDACTOR.redact(text) == TextRedactor([CONFIGURED], b"key").redact(text)
    assert REDACTOR.redact(text) == TextRedactor([CONFIGURED], b"key").redact(text)


def test_the_least_recently_used_text_is_forgotten_first() -> None:
    passed = PassedTexts(b"key")
    digests = [passed.digest(str(n).encode()) for n in range(REMEMBERED + 1)]
    for each in digests[:-1]:
        passed.add(each)
    assert passed.knows(digests[0])

    passed.add(digests[-1])

    assert passed.knows(digests[0])
    assert not passed.knows(digests[1])


def test_a_rule_with_a_required_character_skips_texts_without_it() -> None:
    matching = literal_filter([("@", "%40"), ("token", "pwd"), ("</",), ("key",)])

    assert list(matching(b"nothing of it")) == []
    assert list(matching(b"the KEY at %40, </b>")) == [0, 2, 3]
    assert list(matching(b"a PWD")) == [1]


def test_plain_words_run_no_rule_with_a_required_character() -> None:
    words = b"error rate rose from 0.2% to 8.4% within 3 minutes"

    assert list(detector(pii=True)._gates(words)) == []
