"""Answers as Markdown: only allowed links live, code stays code, also when cut anywhere."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text.links import NO_LINKS, LinkPolicy
from bot.slack.text.markdown import hold_back
from tests.fixtures_slack import outside_code, safe_markdown

GRAFANA = LinkPolicy(frozenset({"grafana.example.com"}))


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("see https://evil.example/?d=secret.", "see `https://evil.example/?d=secret`."),
        ("[Grafana](https://evil.example)", "Grafana (`https://evil.example`)"),
        ("![x](https://evil.example/?d=1)", "x (`https://evil.example/?d=1`)"),
        ("<https://evil.example|Grafana>", "`https://evil.example|Grafana`"),
        ("<https://evil.example>", "`https://evil.example`"),
        ("slack://open and mailto:a@b.c", "`slack://open` and `mailto:a@b.c`"),
        ("[a](javascript:alert(1))", "a (`javascript:alert(1)`)"),
        ("[a](//evil.example)", "a (`//evil.example`)"),
        ("www.evil.zz/x", "`www.evil.zz/x`"),
        ("secret.evil.com", "`secret.evil.com`"),
        ("еvil.рф/путь", "`еvil.рф/путь`"),
        ("https\\://evil.example", "`https://evil.example`"),
        ("\\https://evil.example", "\\ `https://evil.example`"),
        ("`open https://evil.example", "ˋopen `https://evil.example`"),
        ("\\`https://evil.example`", "\\ `https://evil.example`"),
        ("[a][b]\n\n[b]: https://evil.example", "[a] [b]\n\n[b] : `https://evil.example`"),
        ("[x [y]](https://evil.example)", "[x [y]] (`https://evil.example`)"),
        (
            "checkout.latency is 2.4 and v1.2.3, e.g. fine",
            "`checkout.latency` is 2.4 and v1.2.3, e.g. fine",
        ),
        ("**bold** _it_ # h\n- item", "**bold** _it_ # h\n- item"),
        ("> quoted <b>\na < b && c > d", "> quoted &lt;b&gt;\na &lt; b &amp;&amp; c &gt; d"),
        ("``a`b``", "`aˋb`"),
        ("two`pod`s", "two`pod`s"),
        ("|`x|[l](https://evil.example)`|", "|`x`|`[l](https://evil.example)`|"),
        ("|a|\n|-|\n|``|evil.example``|", "|a|\n|-|\n||`evil.example`|"),
        ("`a | b` and `get | www.evil.example`", "`a | b` and `get`|`www.evil.example`"),
        (
            "text[^1]\n\n[^1]: [l](https://evil.example)",
            "text[^1]\n\n[^1] : l (`https://evil.example`)",
        ),
        ("<a href=//evil.example>x</a>", "&lt;a `href=//evil.example`&gt;x&lt;/a&gt;"),
        ("[l](ht\u2060tps://%65vil.example)", "l (`https://%65vil.example`)"),
        ("see`evil.example`now", "see `evil.example` now"),
        ("``[a](https://evil.example/x``grew", "`[a](https://evil.example/x` grew"),
    ],
)
def test_text_is_rewritten_without_live_links(written: str, sent: str) -> None:
    assert safe_markdown(written, NO_LINKS) == sent


@pytest.mark.parametrize(
    "text",
    [
        "[board](https://grafana.example.com/d/1?a=1&b=2)",
        "https://grafana.example.com/d/1?a=1&b=2",
    ],
)
def test_a_link_to_an_allowed_host_stays(text: str) -> None:
    assert safe_markdown(text, GRAFANA) == text


@pytest.mark.parametrize(
    "url",
    [
        "https://grafana.example.com.evil.example",
        "https://grafana.example.com@evil.example",
        "https://evil.example/grafana.example.com",
        "https://evil.example\\@grafana.example.com",
        "ftp://grafana.example.com",
        "https://grafana.exаmple.com",
        "https://grafana.example.com:99999",
    ],
)
def test_a_look_alike_of_an_allowed_host_is_removed(url: str) -> None:
    assert "](" not in safe_markdown(f"[board]({url})", GRAFANA)
    assert "://" not in outside_code(safe_markdown(f"see {url}", GRAFANA))


def test_an_image_of_an_allowed_host_is_removed() -> None:
    assert safe_markdown("![x](https://grafana.example.com/p.png)", GRAFANA) == (
        "x (`https://grafana.example.com/p.png`)"
    )


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("```py\nif a < b:\n```", "```py\nif a &lt; b:\n```"),
        ("~~~\nhttps://x.example\n~~~", "```\nhttps://x.example\n```"),
        ("````\n```\ninner\n````", "```\nˋˋˋ\ninner\n```"),
        ("  ```bash\n  ls\n  ```", "```bash\n  ls\n```"),
        ("```\nopen", "```\nopen\n```"),
        ("```<!channel>\nx\n```", "```\nx\n```"),
    ],
)
def test_fences_are_written_one_way_and_closed(written: str, sent: str) -> None:
    assert safe_markdown(written, NO_LINKS) == sent


HOSTILE = st.lists(
    st.sampled_from(
        [
            "https://evil.example/s", "<!channel>", "<@U1>", "@here", "[l](", ")", "](", "`", "``",
            "```", "~~~", "\n", " ", "\\", "![", "]", "[", "<", ">", "|", "&lt;", "\x1b[", "*", "> ",
            "    ", "- ", "word", "[x]: ", "http", "://", "(", "\u202e", "\r",
        ]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(HOSTILE)
def test_no_link_and_no_mention_is_active_outside_code(text: str) -> None:
    sent = safe_markdown(text, NO_LINKS)

    assert "://" not in outside_code(sent)
    assert "](" not in outside_code(sent)
    assert not re.search(r"<[!@#]|@(?:here|channel)", sent)


@given(HOSTILE, st.integers(0, 200))
def test_no_link_is_active_at_any_moment_of_the_stream(text: str, cut: int) -> None:
    sent = safe_markdown(hold_back(text[:cut]), NO_LINKS)

    assert "://" not in outside_code(sent)
    assert not re.search(r"<[!@#]|@(?:here|channel)", sent)


@pytest.mark.parametrize(
    ("so_far", "shown"),
    [
        ("see https://ev", "see "),
        ("ask <!chan", "ask "),
        ("ask @chan", "ask "),
        ("a [board](https://gra", "a "),
        ("colour \x1b[3", "colour "),
        ("Checkout fails.", "Checkout fails."),
        ("Checkout fails since 11", "Checkout fails since 11"),
        ("The key is hunter2hun", "The key is "),
        ("", ""),
    ],
)
def test_an_unfinished_token_is_held_back(so_far: str, shown: str) -> None:
    assert hold_back(so_far) == shown


def test_hostile_text_is_rewritten_in_linear_time() -> None:
    safe_markdown("[](" * 20_000 + "`" * 20_001 + "a." * 20_000 + "\x1b]" * 20_000, NO_LINKS)
    safe_markdown("` `` " * 10_000, NO_LINKS)
