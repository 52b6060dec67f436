"""Clock times of a question, read in the asker's zone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.local_time import in_zone, zone_in
from adapters.llm.triage.when import window_in

NOW = datetime(
    2026, 4, 7, 14, 35, tzinfo=UTC
)  # 16:35 in Berlin, 20:05 in Kolkata, 07:35 in California


def window(text: str, zone: str = "Europe/Berlin", now: datetime = NOW) -> tuple[str, str]:
    found = window_in(text, now, zone)
    assert found is not None
    return f"{found.start:%d %H:%M}", f"{found.end:%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "zone", "start", "end"),
    [
        ("between 13:30 and 13:40", "Europe/Berlin", "07 11:30", "07 11:40"),
        ("between 13:30 and 13:40", "Asia/Kolkata", "07 08:00", "07 08:10"),
        ("between 13:30 and 13:40", "", "07 13:30", "07 13:40"),
        ("between 13:30 and 13:40 utc", "Europe/Berlin", "07 13:30", "07 13:40"),
        ("between 9 and 10 am", "America/Los_Angeles", "06 16:00", "06 17:00"),
        ("between 2 and 3 pm", "Europe/Berlin", "07 12:00", "07 13:00"),
        ("between 11 and 1 pm", "Europe/Berlin", "07 09:00", "07 11:00"),
        ("between yesterday 3pm and 4pm", "Europe/Berlin", "06 13:00", "06 14:00"),
        ("was it fine an hour ago", "Europe/Berlin", "07 13:05", "07 14:05"),
        ("yesterday between 9 and 10", "Europe/Berlin", "06 07:00", "06 08:00"),
        ("yesterday around 14:00", "Europe/Berlin", "06 11:30", "06 12:30"),
        ("since 16:00", "Europe/Berlin", "07 13:59", "07 14:35"),
        ("since 23:50", "Europe/Berlin", "06 21:49", "07 14:35"),
        ("last night", "Europe/Berlin", "06 20:00", "07 04:00"),
        ("last night", "Asia/Tokyo", "06 13:00", "06 21:00"),
        ("from 23:30 to 00:30", "Europe/Berlin", "06 21:30", "06 22:30"),
        ("the last 2 hours", "Europe/Berlin", "07 12:35", "07 14:35"),
    ],
)
def test_times_are_read_in_the_askers_zone(text: str, zone: str, start: str, end: str) -> None:
    assert window(text, zone) == (start, end)


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("Europe/Berlin", "your times are in Europe/Berlin, so this covers 11:30 to 11:40 UTC"),
        ("UTC", "times are in UTC"),
        ("", "times are in UTC, as your time zone is not known"),
        ("Nowhere/Land", "times are in UTC"),
    ],
)
def test_the_used_zone_is_reported(zone: str, words: str) -> None:
    found = window_in("between 13:30 and 13:40", NOW, zone)

    assert found is not None
    assert found.assumed == (words,)


def test_a_complete_time_has_no_assumption() -> None:
    lasting, told = (
        window_in(text, NOW, "") for text in ("last 2h", "between 13:30 and 13:40 utc")
    )

    assert lasting is not None
    assert told is not None
    assert lasting.assumed == told.assumed == ()


@pytest.mark.parametrize(
    ("now", "text", "start", "end"),
    [
        # 29 March 2026: 02:00 to 03:00 is skipped in Berlin.
        (datetime(2026, 3, 29, 9, tzinfo=UTC), "between 01:30 and 03:30", "29 00:30", "29 01:30"),
        (datetime(2026, 3, 29, 9, tzinfo=UTC), "between 02:15 and 02:45", "29 01:15", "29 01:45"),
        (datetime(2026, 3, 29, 9, tzinfo=UTC), "yesterday around 14:00", "28 12:30", "28 13:30"),
        (datetime(2026, 3, 29, 9, tzinfo=UTC), "last night", "28 21:00", "29 04:00"),
        # 25 October 2026: 02:00 to 03:00 comes twice there.
        (datetime(2026, 10, 25, 9, tzinfo=UTC), "between 02:15 and 02:45", "25 00:15", "25 01:45"),
        (datetime(2026, 10, 25, 9, tzinfo=UTC), "last night", "24 20:00", "25 05:00"),
        (datetime(2026, 10, 25, 0, 50, tzinfo=UTC), "since 02:30", "25 00:29", "25 00:50"),
    ],
)
def test_clock_changes_are_accepted(now: datetime, text: str, start: str, end: str) -> None:
    assert window(text, now=now) == (start, end)


@given(
    st.integers(0, 23), st.integers(0, 59), st.integers(0, 23), st.integers(0, 59),
    st.datetimes(NOW.replace(tzinfo=None), NOW.replace(tzinfo=None) + timedelta(days=366)),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", ""]),
)  # fmt: skip
def test_any_window_is_in_the_past_and_not_empty(
    hour: int, minute: int, to: int, to_minute: int, at: datetime, zone: str
) -> None:
    now = at.replace(tzinfo=UTC)
    found = window_in(f"between {hour}:{minute:02} and {to}:{to_minute:02}", now, zone)

    assert found is not None
    assert found.start < found.end <= now
    assert found.end - found.start <= timedelta(hours=24)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "", "Etc/GMT+5"])
def test_the_note_beside_a_question_is_read_back(zone: str) -> None:
    assert zone_in(f"Now\n- Time: 2026-04-07T14:35:00Z.\n- {in_zone(zone)}") == zone
