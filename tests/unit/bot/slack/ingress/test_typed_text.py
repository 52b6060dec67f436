"""What people typed, without Slack's markup."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.listeners.message_intake import is_stop, mentions, question
from bot.slack.text.plain import message_source, plain_text

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
        ("&amp;lt;", "<"),
        ("&amp;amp;lt;", "&lt;"),
        ("&amp;lt;@UBOT&amp;gt;", "<@UBOT>"),
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
        (":fire: <http://a.b-c.io|a.b-c.io>", "🔥 a.b-c.io"),
        (
            ":rotating_light: is <http://pay.io|pay.io> down? :+1::skin-tone-3:",
            "🚨 is pay.io down? 👍",
        ),
        (
            "is :our-own: slow? 10:15:30, svc:fire:80, ::1:fire:",
            "is :our-own: slow? 10:15:30, svc:fire:80, ::1:fire:",
        ),
        (":space: :digit_one: :a:", ":space: :digit_one: :a:"),
        (":warning::fire: <http://a|b|c>", "⚠🔥 b|c (http://a)"),
        ("<http://checkout|checkout>'s p99", "checkout's p99"),
        ("since <!date^1392734382^{date_short} {time}>", "since 2014-02-18 14:39 UTC"),
        (
            "since <!date^1392734382>, <!date^1392734382^{date}^https://x.test>",
            "since 2014-02-18 14:39 UTC, 2014-02-18 14:39 UTC",
        ),
        ("<!date^-1^{date}> <!date^999999999999^{date}|>.", "1969-12-31 23:59 UTC ."),
        ("<!date^18446744073709551616^{date}> <!date>", "@date @date"),
        ("p95 &amp;gt; 3 &amp;amp;&amp;amp; up", "p95 > 3 && up"),
        ("<http://pay.io?a=1&amp;amp;b=2|pay.io?a=1&amp;amp;b=2>", "pay.io?a=1&b=2"),
        ("in <#C1|incident-checkout> and <#C2>", "in #incident-checkout and #C2"),
        ("<!here> <!subteam^S1|@sre> <!subteam^S2>", "@here @sre @subteam"),
        ("<http://10.0.0.1:9090|10.0.0.1:9090> down", "10.0.0.1:9090 down"),
        ("<http://checkout.io/a?b=1&amp;c=2|checkout.io/a?b=1&amp;c=2>", "checkout.io/a?b=1&c=2"),
        ("<http://münchen.test|münchen.test>", "münchen.test"),
        ("<http://xn--mnchen-3ya.test|münchen.test>", "münchen.test (http://xn--mnchen-3ya.test)"),
        ("<tel:1764230400|1764230400>", "1764230400"),
        ("`<http://pay.io|pay.io>`,<http://main.py|main.py>:42", "`pay.io`,main.py:42"),
        ("<http://payments.svc|payments.svc>.cluster.local", "payments.svc.cluster.local"),
        ("<http://pay.io.evil.test|pay.io>", "pay.io (http://pay.io.evil.test)"),
        ("<https://u:p@pay.io|pay.io>", "pay.io (https://u:p@pay.io)"),
        ("<mailto:a@b.io?subject=x|a@b.io>", "a@b.io (mailto:a@b.io?subject=x)"),
        ("<!date^1^{date}^https://x.test|Jan 1> <#C1|>", "Jan 1 #C1"),
        ("&lt;http://x.test|y&gt;", "<http://x.test|y>"),
        ("a < b", "a < b"),
        ("<@UBOT>", ""),
        ("", ""),
    ],
)
def test_markup_becomes_readable(typed: str, read: str) -> None:
    assert question(typed, BOT) == read


RICH: list[tuple[dict[str, object], str]] = [
    ({"type": "text", "text": "p95 > 3 & <@UBOT> <http://evil.test|pay.io>"},
     "p95 > 3 & <@UBOT> <http://evil.test|pay.io>"),
    ({"type": "link", "url": "https://evil.test/?a=1&b=2", "text": "checkout"},
     "checkout (https://evil.test/?a=1&b=2)"),
    ({"type": "link", "url": "http://pay.io", "text": "pay.io"}, "pay.io"),
    ({"type": "link", "url": "https://pay.io"}, "https://pay.io"),
    ({"type": "link", "url": "https://x.test/a|b>", "text": "<c>"}, "<c> (https://x.test/a%7Cb>)"),
    ({"type": "date", "timestamp": 1, "format": "{date}", "fallback": "1 Jan, 00:00"}, "1 Jan, 00:00"),
    ({"type": "date", "timestamp": 1392734382, "format": "{date}"}, "2014-02-18 14:39 UTC"),
    ({"type": "date", "timestamp": None, "format": "{date}"}, "@date"),
    ({"type": "emoji", "name": "fire", "unicode": "1f525"}, "🔥"),
    ({"type": "emoji", "name": "fire", "skin_tone": None}, "🔥"),
    ({"type": "broadcast", "range": "here"}, "@here"),
    ({"type": "usergroup", "usergroup_id": "S1"}, "@subteam"),
    ({"type": "color", "value": "#fff"}, ""),
    ({"type": "link", "url": None, "text": 7}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("element", "read"), RICH, ids=[str(each) for each, _ in RICH])
def test_rich_text_becomes_readable(element: dict[str, object], read: str) -> None:
    section = {"type": "rich_text_section", "elements": [None, element]}
    source = message_source("", None, [{"type": "rich_text", "elements": [section]}])

    assert plain_text(source, lambda user: f"<@{user}>") == read


def test_list_entries_in_rich_text_are_lines() -> None:
    entries = [
        {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
        for text in ("one", "two")
    ]
    block = {"type": "rich_text", "elements": [{"type": "rich_text_list", "elements": entries}]}

    assert message_source("", [{"blocks": [block]}], []) == "one\ntwo"


def words(text: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": text}


CELLS: list[object] = [{"type": "raw_text", "text": "p99"}, {"type": "raw_number", "value": 2.5}]
CARD = {"type": "card", "title": words("Checkout"), "subtitle": None, "body": words("slow")}


@pytest.mark.parametrize(
    ("block", "read"),
    [
        ({"type": "image", "title": words("p99"), "alt_text": "above 2 s"}, "p99\nabove 2 s"),
        ({"type": "video", "title": words("Errors"), "description": words("5xx")}, "Errors\n5xx"),
        ({"type": "alert", "level": "error", "text": words("Checkout fails")}, "Checkout fails"),
        ({"type": "markdown", "text": "Checkout fails"}, "Checkout fails"),
        (CARD, "Checkout\nslow"),
        ({"type": "carousel", "elements": [None, CARD]}, "Checkout\nslow"),
        ({"type": "data_table", "caption": "Load", "rows": [None, CELLS]}, "Load\np99 | 2.5"),
        ({"type": "table", "rows": [[{"type": "raw_number", "value": [2]}]]}, ""),
        ({"type": "section", "fields": [words("Service"), None, words("pay")]}, "Service\npay"),
        ({"type": "actions", "elements": [{"type": "button", "text": words("Ack")}]}, ""),
    ],
    ids=str,
)
def test_each_kind_of_block_has_its_words(block: dict[str, object], read: str) -> None:
    assert message_source("", None, [block]) == read
    assert message_source("", [{"blocks": [block], "fallback": ""}], None) == read


def test_a_forwarded_message_has_the_words_of_its_blocks() -> None:
    blocks = [{"type": "header", "text": words("Checkout fails")}]
    shared = [None, {"message": None}, {"message": {"blocks": blocks}}]
    forwarded = {"message_blocks": shared, "fallback": "[no preview available]"}

    assert message_source("", [forwarded], None) == "Checkout fails"


ENTITY = re.compile("&(?:amp|lt|gt);|:[a-z0-9+_'-]+:")


@given(st.text().filter(lambda text: not ("<" in text or ">" in text or ENTITY.search(text))))
def test_escaped_text_returns_as_typed(typed: str) -> None:
    escaped = typed.replace("&", "&amp;")
    assert question(f"<@{BOT}> {escaped}", BOT) == typed.strip()


@given(st.text(alphabet="<>@|&;ltampUBOT# !", max_size=60))
def test_any_text_is_accepted(typed: str) -> None:
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
def test_the_word_stop_alone_is_a_stop(text: str) -> None:
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
def test_other_words_are_not_a_stop(text: str) -> None:
    assert not is_stop(text)


@pytest.mark.parametrize(
    ("text", "named"), [("hi <@UBOT>", True), ("hi <@U2>", False), ("hi @UBOT", False)]
)
def test_only_its_own_mention_names_the_bot(text: str, named: bool) -> None:
    assert mentions(text, BOT) is named
