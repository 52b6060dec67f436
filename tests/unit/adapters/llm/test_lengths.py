"""Lengths of time in a question, and times that cannot be read."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.triage.when import speaks_of_time, window_in
from tests.fixtures_triage import investigate, moved, world

NOW = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)


def window(text: str, now: datetime = NOW, zone: str = "") -> tuple[str, str]:
    found = window_in(text, now, zone)
    assert found is not None
    return f"{found.start:%d %H:%M}", f"{found.end:%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("why is web slow since 15 minutes?", "07 14:19", "07 14:35"),
        ("web is slow for 15 min", "07 14:19", "07 14:35"),
        ("web is slow for about 15m", "07 14:19", "07 14:35"),
        ("slow for the last quarter of an hour", "07 14:19", "07 14:35"),
        ("slow the last quarter of an hour", "07 14:20", "07 14:35"),
        ("it began 15 min ago", "07 14:19", "07 14:35"),
        ("it began a quarter of an hour ago", "07 14:19", "07 14:35"),
        ("it began half an hour ago", "07 14:04", "07 14:35"),
        ("slow for half an hour", "07 14:04", "07 14:35"),
        ("slow since 2 hours", "07 12:34", "07 14:35"),
        ("slow since 1.5 hours", "07 13:04", "07 14:35"),
        ("slow since 1h30m", "07 13:04", "07 14:35"),
        ("slow since an hour and 30 minutes", "07 13:04", "07 14:35"),
        ("slow since an hour", "07 13:34", "07 14:35"),
        ("slow for a couple of hours", "07 12:34", "07 14:35"),
        ("slow since twenty minutes", "07 14:14", "07 14:35"),
        ("slow since a minute", "07 14:30", "07 14:35"),
        ("the last hour", "07 13:35", "07 14:35"),
        ("in the past 90 minutes", "07 13:05", "07 14:35"),
        ("was it slow between 30 and 15 minutes ago?", "07 14:05", "07 14:20"),
        ("from 2 hours ago to 1 hour ago", "07 12:35", "07 13:35"),
        ("slow since 2 days", "05 14:34", "06 14:34"),
        ("errors of the last 3 days", "06 14:35", "07 14:35"),
        ("was it slow yesterday?", "06 00:00", "07 00:00"),
        ("what happened this morning?", "07 06:00", "07 12:00"),
        ("slow since this morning", "07 06:00", "07 14:35"),
        ("slow since 10am", "07 09:59", "07 14:35"),
        ("what was on 2026-04-05?", "05 00:00", "06 00:00"),
        ("what was on 2026-04-05 at 12:00?", "05 11:30", "05 12:30"),
        ("slow at 2026-04-07t13:00:00z", "07 12:30", "07 13:30"),
        ("2026-04-07t13:00z/2026-04-07t13:20z", "07 13:00", "07 13:20"),
    ],
)  # fmt: skip
def test_a_length_or_a_day_is_read(text: str, start: str, end: str) -> None:
    assert window(text) == (start, end)


def test_a_range_longer_than_the_maximum_is_cut_with_a_notice() -> None:
    lasting, last = window_in("since 2 days", NOW, ""), window_in("the last 2 days", NOW, "")

    assert lasting is not None
    assert last is not None
    assert (
        "only 2026-04-05 14:34 to 2026-04-06 14:34 UTC, the longest time that I can check at once"
        in lasting.assumed[0]
    )
    assert "only 2026-04-06 14:35 to 2026-04-07 14:35 UTC" in last.assumed[0]


@pytest.mark.parametrize(
    ("fired", "start"),
    [
        ("2026-04-07t14:30z", "07 14:05"),  # within the usual window, which is kept
        ("2026-04-07t11:00z", "07 10:50"),
        ("2026-04-06t20:00z", "06 19:50"),
    ],
)
def test_an_alerts_window_starts_shortly_before_it_fired(fired: str, start: str) -> None:
    found = window_in(f"what is wrong with web since {fired}?", NOW, "Europe/Berlin")

    assert found is not None
    assert (f"{found.start:%d %H:%M}", found.end, found.is_exact) == (start, NOW, False)


def test_an_old_alerts_window_starts_at_its_beginning_and_names_the_cut() -> None:
    found = window_in("what is wrong with web since 2026-04-04t12:00z?", NOW, "")

    assert found is not None
    assert f"{found.start:%d %H:%M} {found.end:%d %H:%M}" == "04 11:50 05 11:50"
    assert "only 2026-04-04 11:50 to 2026-04-05 11:50 UTC" in found.assumed[0]


@pytest.mark.parametrize(
    "text",
    [
        "slow since the deploy", "slow for a while", "was it slow last tuesday?", "at 3 o'clock?",
        "slow since 0 minutes", "since 99999999999999999999 hours", "since 999999999 weeks",
        "slow on 2026-13-45", "since 2031-01-01t00:00z", "since 9999-12-31", "since 0001-01-01t00:00z",
        "slow at 25:99",
    ],
)  # fmt: skip
def test_an_unreadable_time_is_recognised_as_one(text: str) -> None:
    assert window_in(text, NOW, "Europe/Berlin") is None
    assert speaks_of_time(text)


@pytest.mark.parametrize("text", ["why is web slow?", "is it the database?", "errors of v2.3.1?"])
def test_a_question_without_a_time_has_none(text: str) -> None:
    assert not speaks_of_time(text)


_PIECES = st.sampled_from(
    ["since ", "for ", "last ", "the ", "about ", " ago", "half an ", "a quarter of an ", "hour",
     " minutes", "m", "d", "w", "between ", "from ", " and ", " to ", ":", "-", ".", "2026-04-05", "t",
     "z", "14:05", "yesterday", "today", "this morning", "tonight", "last night", "am", "9999-12-31",
     "0001-01-01t00:00", "+14:00", "-23:59", "+99:99", "utc"]
)  # fmt: skip
_NUMBERS = st.integers(0, 10**30).map(str) | st.floats(0, 1e12).map("{:.3f}".format)


@given(
    st.lists(_PIECES | _NUMBERS | st.text(max_size=6), max_size=14).map("".join),
    st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Kiritimati", ""]),
)
def test_any_text_gives_a_short_window_in_the_past(text: str, zone: str) -> None:
    found = window_in(text.lower(), NOW, zone)
    windows = [found] if found else []

    assert all(one.start < one.end <= NOW for one in windows)
    assert all(one.end - one.start <= timedelta(hours=24) for one in windows)


@given(st.sampled_from([" ", "1", "a ", "for ", "last ", "half ", "0-", "since about "]))
def test_repetitions_cost_no_time(piece: str) -> None:
    text = "since " + piece * 4_000

    assert window_in(text, NOW, "") is None or speaks_of_time(text)


async def test_an_unreadable_time_is_answered_with_the_checked_window() -> None:
    found = await investigate(world(), "is checkout slow since the last release?")

    assert "Assumed: the last half hour, as I did not understand the time" in found.text
    assert found.marks == ()


async def test_a_readable_duration_gets_no_notice() -> None:
    found = await investigate(world(), "is checkout slow since 15 minutes?")

    (asked,) = {one["time_range"] for one in found.asked("core__sweep_metrics")}
    assert asked == "2026-04-07T14:19:00Z/2026-04-07T14:35:00Z"
    assert "Assumed" not in found.text


async def test_deploys_of_the_whole_stated_time_are_reported() -> None:
    found = await investigate(world(), "what was deployed in the last 3 days?")

    (asked,) = {one["time_range"] for one in found.asked("core__get_recent_deploys")}
    assert asked == "2026-04-04T14:35:00Z/2026-04-07T14:35:00Z"


async def test_an_alerts_window_widens_while_the_trouble_started_earlier() -> None:
    slow = moved("checkout", "latency", "2026-04-07T14:05:00Z", since_before=True)
    found = await investigate(world([slow]), "What is wrong with checkout since 2026-04-07T14:30Z?")

    assert [one["time_range"] for one in found.asked("core__sweep_metrics")] == [
        "2026-04-07T14:05:00Z/2026-04-07T14:35:00Z",
        "2026-04-07T12:35:00Z/2026-04-07T14:35:00Z",
        "2026-04-07T08:35:00Z/2026-04-07T14:35:00Z",
    ]


async def test_a_cut_window_of_an_old_alert_is_reported_with_dates() -> None:
    asked = "What is wrong with checkout since 2026-04-04T12:00Z?"
    found = await investigate(world(), asked)

    assert "Assumed: only 2026-04-04 11:50 to 2026-04-05 11:50 UTC" in found.text
    assert found.marks == ()
