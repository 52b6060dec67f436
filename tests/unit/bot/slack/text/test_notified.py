"""A notification begins with the answer's first sentence, and nothing of the answer is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text.links import LinkPolicy, folded, reads_as_address
from bot.slack.text.split import split
from bot.slack.views.render import notified


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("**Checkout is slow since v2.4.0 at 14:05 UTC [E1].** Then more.", "Checkout is slow since v2.4.0 at 14:05 UTC."),
        ("**Most likely the deploy of v2.4.0 [E2, E3]**\n\n- p99 rose", "Most likely the deploy of v2.4.0"),
        ("## It is the pool. It ran out.\nMore.", "It is the pool."),
        ("- It is the pool.\n- And more.", "It is the pool."),
        ("It is slow, e.g. checkout is. The rest.", "It is slow, e.g. checkout is."),
        ("p99 is 1.8 s. [E1] It was 0.2 s.", "p99 is 1.8 s."),
        ("**The pool ran out. It is full.** More.", "The pool ran out."),
        ("Why not? See below.", "Why not?"),
    ],
)  # fmt: skip
def test_the_first_line_is_the_first_sentence_in_plain_words(body: str, first: str) -> None:
    line, _, rest = notified(body).partition("\n")

    assert line == first
    assert rest


@pytest.mark.parametrize(
    "body", ["one two", "", "```\ncode. here\n```", "| a. | b |\n|--|--|", "x" * 9000]
)
def test_a_text_without_a_first_sentence_is_unchanged(body: str) -> None:
    assert notified(body) == body


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("It is slow.\n- **cart**: p99 rose", "It is slow.\n- cart: p99 rose"),
        ("**It is `a**b`.** Look.", "It is `a**b`.\nLook."),
        ("**It is slow**", "It is slow"),
        ("It is slow.\n**one\ntwo**", "It is slow.\n**one\ntwo**"),
        ("It is slow.\n```\n**x**\n```", "It is slow.\n```\n**x**\n```"),
        ("It is slow.\n2 ** 3 ** 4", "It is slow.\n2 ** 3 ** 4"),
        ("| **a** | b |\n|--|--|", "| a | b |\n|--|--|"),
    ],
)
def test_bold_words_are_plain_and_code_is_unchanged(body: str, shown: str) -> None:
    assert notified(body) == shown


WORDS = st.sampled_from(
    ["evil", ".example", "**", " ", "[E1]", " [E1]", ". ", "\n", "<!channel>", "`", "x", "~~", "@here", "://", "# ", "- "]
)  # fmt: skip


@given(st.lists(WORDS, max_size=30).map("".join))
def test_no_address_and_no_mention_is_created(text: str) -> None:
    bodies = [piece.safe for piece in split(text, LinkPolicy(frozenset()))]
    told = [notified(body) for body in bodies]

    def addresses(texts: list[str]) -> set[str]:
        plain = "\n".join(texts).split("`")[::2]
        return {w for part in plain for w in part.split() if reads_as_address(folded(w))}

    assert addresses(told) <= addresses(bodies) | {w.strip("*") for w in addresses(bodies)}
    assert not any("<" in each or "@here" in each for each in told)


@given(st.text(max_size=500))
def test_no_word_is_lost(text: str) -> None:
    def letters(of: str) -> list[str]:
        return [c for c in of if c.isalpha() and c != "E"]

    assert letters(notified(text)) == letters(text)
