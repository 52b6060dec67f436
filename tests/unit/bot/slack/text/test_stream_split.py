"""What may be appended of an answer that is still being written."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.slack.text.links import NO_LINKS
from bot.slack.text.markdown import growing
from bot.slack.text.mrkdwn import clean
from tests.fixtures_slack import outside_code

WORDS = st.sampled_from(
    [
        "the ", "pool of `checkout` ", "grew,\n", "\n", "- one\n", "**twice** ", "`a b` ", "it fell. ",
        "see the logs of payments, please ", "12:30 ", "(again) ", "```\ncode x\n```\n", "é ", "| a | b |\n",
        "at 14 % of the limit that was set ",
    ]
)  # fmt: skip
HOSTILE = st.sampled_from(
    [
        "`", "``", "```", "~~~\n", "[a](", "https://evil.example/x", ")", "<", "<@U1>", ">", "✅ ",
        "Confirmed by @lead\n", "✅\n", "\\", "ex", "ample.com ", "\u202e", "\x1b[31m", "[E1]: x\n", "> ",
    ]
)  # fmt: skip
WRITTEN = st.lists(WORDS, max_size=40)
ANYTHING = st.lists(st.one_of(WORDS, HOSTILE), max_size=30)


def grown(written: list[str]) -> list[str]:
    """What may be sent after each of the pieces."""
    return [growing(clean("".join(written[:n])), NO_LINKS) for n in range(len(written) + 1)]


@given(WRITTEN)
def test_sent_text_of_an_ordinary_answer_never_changes(written: list[str]) -> None:
    sent = grown(written)
    assert [later[: len(at)] for at, later in pairwise(sent)] == sent[:-1]


@settings(max_examples=60)
@given(ANYTHING)
@example(["``", "[a](", "https://evil.example/x", "``", "grew,\n"])
def test_only_safe_text_is_sent(written: list[str]) -> None:
    for text in grown(written):
        assert "<" not in text
        assert "](http" not in outside_code(text)
        assert "\u202e" not in text


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("Checkout fails since the deploy of 11:40, it ", "Checkout fails since the deploy of 11:40, it"),
        ("Checkout fails since the deploy of 11:40 to check", "Checkout fails since the deploy of 11:40 to"),
        ("Checkout fails since the deploy of 11:40, see `pool ", "Checkout fails since the deploy of 11:40, see"),
        ("Checkout fails since the deploy of 11:40, see [the diff](x ", "Checkout fails since the deploy of 11:40, see"),
        ("Checkout fails, its pool is far too small <@U1 ", "Checkout fails, its pool is far too small"),
        ("✅ Checkout is well again, as far as one can see ", ""),
        ("Confirmed by ", ""),
        ("One.\nConf", "One."),
        ("One.\n```\npool = 5\nsize = ", "One.\n```\npool = 5"),
        ("One.\n\n\n", "One."),
    ],
)  # fmt: skip
def test_only_the_final_part_of_an_incomplete_line_is_sent(source: str, sent: str) -> None:
    assert growing(source, NO_LINKS) == sent
