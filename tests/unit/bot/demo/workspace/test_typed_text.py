"""What people type becomes what Slack's clients send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.people import User
from bot.demo.workspace.typed_text import as_rich_text, as_sent, escape, mentioned, unescape

KORTEX = User("UBOT1", "kortex", "Kortex", "T1", is_bot=True)


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("@kortex why?", "<@UBOT1> why?"),
        ("<@UBOT1> why?", "<@UBOT1> why?"),
        ("mail me@kortex.dev", "mail me@kortex.dev"),
        ("@nobody", "@nobody"),
        ("a < b && <script>", "a &lt; b &amp;&amp; &lt;script&gt;"),
        ("see https://x.dev/a?b=1&c=2.", "see <https://x.dev/a?b=1&amp;c=2>."),
        ("<@UBOT1|kortex> hi", "<@UBOT1|kortex> hi"),
    ],
)
def test_typed_text_is_escaped_and_linked(typed: str, sent: str) -> None:
    assert as_sent(typed, [KORTEX]) == sent


def test_mentions_are_found_in_both_forms() -> None:
    assert mentioned("<@UBOT1> and <@U2|two>") == {"UBOT1", "U2"}


def test_rich_text_contains_the_same_words() -> None:
    block = as_rich_text("<@UBOT1> a &lt; b <https://x.dev>")
    assert block["elements"] == [
        {
            "type": "rich_text_section",
            "elements": [
                {"type": "user", "user_id": "UBOT1"},
                {"type": "text", "text": " a < b "},
                {"type": "link", "url": "https://x.dev"},
            ],
        }
    ]


@given(st.text(alphabet="ab<>&;@ "))
def test_escaping_is_undone_and_leaves_no_markup(text: str) -> None:
    escaped = escape(text)
    assert not set(escaped) & set("<>")
    assert unescape(escaped) == text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
