"""What people typed, without Slack's markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.received.intake import is_stop, mentions, question

BOT = "UBOT"


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("<@UBOT> why?", "why?"),
        ("<@UBOT|kortex> why?", "why?"),
        ("why, <@UBOT>?", "why, ?"),
        ("<@UBOT> ask <@U2>", "ask <@U2>"),
        ("<@U2|ana> broke it", "<@U2> broke it"),
        ("<@UBOTTOM> why?", "<@UBOTTOM> why?"),
        ("p95 &gt; 3 &amp;&amp; up &lt; 1", "p95 > 3 && up < 1"),
        ("&amp;lt;", "&lt;"),
        ("&lt;@UBOT&gt;", "<@UBOT>"),
        ("see <https://x.test/a?b=1&amp;c=2>", "see https://x.test/a?b=1&c=2"),
        ("see <https://x.test|the board>", "see the board (https://x.test)"),
        ("see <https://x.test|x.test>", "see x.test"),
        ("why is <http://checkout.io|checkout.io> slow?", "why is checkout.io slow?"),
        ("is <http://API.checkout.io/v1|api.checkout.io/v1> up?", "is api.checkout.io/v1 up?"),
        ("<https://checkout.io/|https://checkout.io>", "https://checkout.io"),
        ("ask <mailto:ana@acme.test|ana@acme.test>", "ask ana@acme.test"),
        ("ask <mailto:ana@acme.test>", "ask ana@acme.test"),
        ("call <tel:+4930123456|+49 30 123456>", "call +49 30 123456"),
        ("<http://evil-bank.test|evilbank.test>", "evilbank.test (http://evil-bank.test)"),
        ("since <!date^1392734382^{date_short} {time}|18 Feb, 14:39>", "since 18 Feb, 14:39"),
        (":fire: <http://a.b-c.io|a.b-c.io>", ":fire: a.b-c.io"),
        ("in <#C1|incident-checkout> and <#C2>", "in #incident-checkout and #C2"),
        ("<!here> <!subteam^S1|@sre> <!subteam^S2>", "@here @sre @subteam"),
        ("a < b", "a < b"),
        ("<@UBOT>", ""),
        ("", ""),
    ],
)
def test_markup_becomes_readable(typed: str, read: str) -> None:
    assert question(typed, BOT) == read


@given(st.text().filter(lambda text: "<" not in text and ">" not in text))
def test_text_that_slack_escaped_comes_back_as_typed(typed: str) -> None:
    escaped = typed.replace("&", "&amp;")
    assert question(f"<@{BOT}> {escaped}", BOT) == typed.strip()


@given(st.text(alphabet="<>@|&;ltampUBOT# !", max_size=60))
def test_no_text_is_too_odd(typed: str) -> None:
    assert len(question(typed, BOT)) <= len(typed) + 3 * typed.count("<")


@pytest.mark.parametrize(
    "text",
    [
        "stop",
        "Stop!",
        " STOP. ",
        "stop...",
        "cancel",
        "Cancel, please.",
        "never mind",
        "Nevermind!",
        "please stop",
    ],
)
def test_stop_alone_is_stop(text: str) -> None:
    assert is_stop(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop it",
        "don't stop",
        "stopped",
        "nonstop",
        "cancel the deploy",
        "cancelled?",
        "never mind the logs",
    ],
)
def test_other_words_are_not(text: str) -> None:
    assert not is_stop(text)


@pytest.mark.parametrize(
    ("text", "named"), [("hi <@UBOT>", True), ("hi <@U2>", False), ("hi @UBOT", False)]
)
def test_only_its_own_mention_names_the_bot(text: str, named: bool) -> None:
    assert mentions(text, BOT) is named
