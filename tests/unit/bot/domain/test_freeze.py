"""Quiet hours and windows: what they hold, to the minute and over a change of clocks."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.freeze import FreezeWindow, QuietHours


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "moment", "quiet"),
    [
        ("22:00-06:00", "2026-03-04 21:59:59", False),
        ("22:00-06:00", "2026-03-04 22:00", True),
        ("22:00-06:00", "2026-03-05 05:59:59", True),
        ("22:00-06:00", "2026-03-05 06:00", False),
        ("09:00-17:00", "2026-03-04 12:00", True),
        ("09:00-17:00", "2026-03-04 08:00", False),
        ("Fri 16:00-08:00", "2026-03-07 07:00", True),  # Saturday, from Friday's
        ("Fri 16:00-08:00", "2026-03-06 07:00", False),
        ("Sat-Sun 00:00-24:00", "2026-03-08 23:59", True),
        ("Sat-Sun 00:00-24:00", "2026-03-09 00:00", False),
        ("Sun-Mon 10:00-11:00", "2026-03-09 10:30", True),
        ("22:00-06:00 Europe/Berlin", "2026-07-01 19:30", False),  # 21:30 in summer
        ("22:00-06:00 Europe/Berlin", "2026-07-01 20:30", True),
        ("22:00-06:00 Europe/Berlin", "2026-01-01 20:30", False),
        ("22:00-06:00 Europe/Berlin", "2026-01-01 21:30", True),
        # The night in which clocks go forward is an hour shorter, and ends at six all the same.
        ("22:00-06:00 Europe/Berlin", "2026-03-29 03:59", True),
        ("22:00-06:00 Europe/Berlin", "2026-03-29 04:00", False),
    ],
)
def test_quiet_hours_follow_the_wall_clock(hours: str, moment: str, quiet: bool) -> None:
    assert (QuietHours.parse(hours).until(at(moment)) is not None) is quiet


@pytest.mark.parametrize(
    "text",
    ["", "22-06", "25:00-06:00", "22:60-06:00", "24:00-06:00", "Foo 22:00-06:00", "22:00-06:00 Mars/X",
     "22:00-06:00 ../../etc/passwd", "22:00 - 06:00"],
)  # fmt: skip
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|is no|time zone|days are|an end"):
        QuietHours.parse(text)


@given(
    start=st.integers(0, 1439),
    end=st.integers(0, 1440),
    moment=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - given a zone
)
def test_quiet_hours_end_in_a_minute_that_is_not_quiet(
    start: int, end: int, moment: datetime
) -> None:
    text = f"Wed {start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"
    hours = QuietHours.parse(text)
    until = hours.until(moment)
    minute = moment.hour * 60 + moment.minute
    expected = (moment.weekday() == 2 and minute >= start and (end <= start or minute < end)) or (
        moment.weekday() == 3 and end <= start and minute < end
    )
    assert (until is not None) is expected
    assert until is None or timedelta(0) < until - moment <= timedelta(days=1)


def test_a_window_applies_only_to_its_actions_and_products() -> None:
    begins = at("2026-12-20")
    window = FreezeWindow(begins, at("2027-01-02"), "", ("roll*",), ("check*",))
    assert window.holds("rollback", "checkout", begins)
    assert window.holds("rollback", "checkout", at("2027-01-01"))
    assert not window.holds("rollback", "checkout", at("2026-12-19"))
    assert not window.holds("rollback", "checkout", at("2027-01-02"))
    assert not window.holds("restart", "checkout", begins)
    assert not window.holds("rollback", "search", begins)
