"""The message of an alert thread: within Slack's limits, and nothing a sender wrote does anything."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.alerts import AlertState, AlertThread, Investigation, ListedAlert
from bot.domain.ids import ChannelId
from bot.slack.views.alert_posts import ending, opening

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ONE = ListedAlert("p99 is high", {"severity": "critical"}, AlertState.FIRING, AT, 1)
THREAD = AlertThread(
    "t", "latency", "checkout", ChannelId("C1"), "", AT, AT, Investigation.DUE,
    firing=1, total=1, listed=(ONE,),
)  # fmt: skip


@pytest.mark.parametrize(
    ("thread", "words"),
    [
        (THREAD, "1 alert firing, since 12:00 UTC"),
        (replace(THREAD, total=3), "1 alert firing, 2 resolved, since 12:00 UTC"),
        (replace(THREAD, repeats=98, heard_at=AT + timedelta(hours=1)), "98 times, last 13:00 UTC"),
        (replace(THREAD, listed=(replace(ONE, fires=3),)), "fired 3 times"),
        (replace(THREAD, is_overflow=True, product=""), "Too many alerts for new threads"),
        (replace(THREAD, product=""), "🔴 p99 is high"),
        (replace(THREAD, heard_at=AT + timedelta(days=2)), "since 2026-11-22 12:00 UTC"),
        (replace(THREAD, resolved_at=AT + timedelta(minutes=9), firing=0, ends=1), "✅ checkout"),
    ],
)
def test_an_alert_post_shows_the_state_of_its_alerts(thread: AlertThread, words: str) -> None:
    assert words in json.dumps(opening(thread).blocks, ensure_ascii=False)


def test_a_resolved_post_has_the_time_and_the_duration() -> None:
    over = replace(THREAD, resolved_at=AT + timedelta(minutes=27), firing=0, ends=1, total=3)
    assert ending(over).text == "✅ All 3 alerts are resolved since 12:27 UTC, after 27 min."
    at_once = replace(over, resolved_at=AT + timedelta(seconds=20), total=1)
    assert ending(at_once).text.endswith("after less than a minute.")
    assert ending(replace(over, resolved_at=None, firing=2)).text == (
        "🔴 2 alerts firing again. Resolved once before."
    )


def test_an_end_before_the_beginning_has_no_duration() -> None:
    back = replace(THREAD, resolved_at=AT - timedelta(hours=1), firing=0, ends=1)
    assert ending(back).text.endswith("after less than a minute.")


ODD = st.text(max_size=40) | st.sampled_from(
    ["<!channel>", "<@U1>", "@here", "[a](https://evil.example)", "<https://evil.example|a>",
     "https://evil.example", "`x`", "*b*\n> q", "\u202e", "mailto:a@b.example", "&lt;!channel&gt;"]
)  # fmt: skip


@given(title=ODD, value=ODD, product=ODD)
def test_nothing_a_sender_wrote_mentions_or_links(title: str, value: str, product: str) -> None:
    odd = ListedAlert(title, {"alertname": value, "severity": value}, AlertState.FIRING, AT, 1)
    part = opening(replace(THREAD, product=product, listed=(odd,)))
    told = part.text + json.dumps(part.blocks, ensure_ascii=False)
    assert "<" not in told
    assert "@here" not in told
    assert " https://" not in told


def test_any_number_of_alerts_fits() -> None:
    wide = ListedAlert(
        "<" * 300, {"alertname": "&" * 300, "pod": "x" * 300}, AlertState.FIRING, AT, 9
    )
    part = opening(replace(THREAD, listed=(wide,) * 10, total=1_000, product="p" * 100))
    blocks: Any = part.blocks
    texts = [block["text"]["text"] for block in blocks if block["type"] == "section"]
    assert max(map(len, texts)) <= 3_000
    assert "more" in texts[1]
