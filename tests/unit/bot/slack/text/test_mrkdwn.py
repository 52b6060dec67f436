"""Text made safe: nothing notifies, nothing hides, nothing breaks a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text.mrkdwn import clean, escape, escape_within, inline, plain, visible

MENTIONS = [
    "<!channel>",
    "<!here|here>",
    "<!everyone>",
    "<!subteam^S123>",
    "<@U123>",
    "<#C123>",
    "@channel",
    "@HERE",
    "@everyone",
    "<https://evil.example|Grafana>",
]


@pytest.mark.parametrize("mention", MENTIONS)
def test_a_mention_does_not_survive_escaping(mention: str) -> None:
    escaped = escape(f"log line {mention} end")

    assert "<" not in escaped
    assert mention.lower() not in escaped.lower()


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("\x1b[2J\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;https://evil.example\x07label\x1b]8;;\x07", "label"),
        ("\x9b31mred", "red"),
        ("50%\r100%\r\nnext", "50%\n100%\nnext"),
        ("nul\x00bell\x07", "nulbell"),
        ("a\u2028b\u2029c", "a\nb\nc"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("safe\u202eexe", "safe\\u202eexe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("tag\U000e0041", "tag"),
        ("👩\u200d🚒 tab\there", "👩\u200d🚒 tab\there"),
    ],
)
def test_text_is_cleaned(dirty: str, cleaned: str) -> None:
    assert clean(dirty) == cleaned


@given(st.text(st.characters()))
def test_cleaned_text_can_be_sent_and_stored(text: str) -> None:
    sent = clean(text).encode()

    assert b"\x00" not in sent
    assert b"\x1b" not in sent


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("a\x1b[2Jb", "a\\u001b[2Jb"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("a\ud800b", "a\\ud800b"),
        ("a\nb\tc", "a\nb\tc"),
    ],
)
def test_hidden_characters_are_shown_in_decided_text(hidden: str, shown: str) -> None:
    assert visible(hidden) == shown


@given(st.text(), st.integers(2, 50))
def test_escaped_text_is_cut_between_whole_characters(text: str, limit: int) -> None:
    cut = escape_within(text, limit)

    assert len(cut) <= limit
    assert escape(text).startswith(cut.removesuffix("…"))


def test_an_entity_is_not_cut() -> None:
    assert escape_within("ab<cd", 5) == "ab…"


def test_a_name_is_one_line_without_code_marks() -> None:
    assert inline("a\n`b`  <c>") == "a ˋbˋ &lt;c&gt;"


def test_plain_text_is_cut_and_defused_but_not_escaped() -> None:
    assert plain("a & @channel", 75) == "a & @\u200bchannel"
    assert plain("x" * 80, 75) == "x" * 74 + "…"
