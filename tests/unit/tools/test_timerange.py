"""Every accepted form of a time range, every refusal, and what holds for all of them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import InvalidArguments
from tools.timerange import MAX_RANGE, parse_duration, parse_time_range

NOW = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-04-07T14:00:00Z/2026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("2026-04-07T14:00:00Z..2026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("2026-04-07T16:00:00+02:00/2026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("2026-04-07T14:00:00Z/PT30M", "14:00:00Z 14:30:00Z"),
        ("PT30M/2026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("20260407T140000Z/PT30M", "14:00:00Z 14:30:00Z"),
        ("last 30m", "14:05:00Z 14:35:00Z"),
        ("Last 30 minutes", "14:05:00Z 14:35:00Z"),
        ("past 1 hour", "13:35:00Z 14:35:00Z"),
        ("the last hour", "13:35:00Z 14:35:00Z"),
        ("30m", "14:05:00Z 14:35:00Z"),
        ("1h30m", "13:05:00Z 14:35:00Z"),
        ("90s", "14:33:30Z 14:35:00Z"),
        ("PT30M", "14:05:00Z 14:35:00Z"),
        ("now-1h..now", "13:35:00Z 14:35:00Z"),
        ("now-2h..now-1h", "12:35:00Z 13:35:00Z"),
        ("now-1h/now", "13:35:00Z 14:35:00Z"),
        ("now - 1h .. now", "13:35:00Z 14:35:00Z"),
        ("2026-04-07T14:00:00Z..now", "14:00:00Z 14:35:00Z"),
        ("2026-04-07T14:00:00Z", "14:00:00Z 14:35:00Z"),
        ("  last   30m ", "14:05:00Z 14:35:00Z"),
        ("1h ago", "13:35:00Z 14:35:00Z"),
        ("an hour ago", "13:35:00Z 14:35:00Z"),
        ("90 Minutes Ago", "13:05:00Z 14:35:00Z"),
        ("-1h", "13:35:00Z 14:35:00Z"),
        ("- 30m", "14:05:00Z 14:35:00Z"),
        ("since 1h ago", "13:35:00Z 14:35:00Z"),
        ("now-1h to now", "13:35:00Z 14:35:00Z"),
        ("from now-2h until now-1h", "12:35:00Z 13:35:00Z"),
        ("2h ago to 1h ago", "12:35:00Z 13:35:00Z"),
        ("-2h/-1h", "12:35:00Z 13:35:00Z"),
        ("-1h..now", "13:35:00Z 14:35:00Z"),
        ("between 2026-04-07T14:00:00Z and 2026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("2026-04-07T14:00:00Z to 2026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("2026-04-07 14:00 UTC to 2026-04-07 14:30 UTC", "14:00:00Z 14:30:00Z"),
        ("1775570400/1775572200", "14:00:00Z 14:30:00Z"),
        ("1775570400..1775572200", "14:00:00Z 14:30:00Z"),
        ("1775570400000 to 1775572200000", "14:00:00Z 14:30:00Z"),
        ("1775570400.0 to now", "14:00:00Z 14:35:00Z"),
        ("1775570400", "14:00:00Z 14:35:00Z"),
        ("1775570400/PT30M", "14:00:00Z 14:30:00Z"),
        ("2026-04-07T14:00:00Z - 2026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("2026-04-07T14:00Z, 2026-04-07T14:30Z", "14:00:00Z 14:30:00Z"),
        ("2026-04-07 14:00Z through 2026-04-07 14:30Z", "14:00:00Z 14:30:00Z"),
        ("now-2h - now-1h", "12:35:00Z 13:35:00Z"),
        ("now - 2h - now - 1h", "12:35:00Z 13:35:00Z"),
        ("now-1h,now", "13:35:00Z 14:35:00Z"),
        ("In the last hour", "13:35:00Z 14:35:00Z"),
        ("over the past 30 minutes", "14:05:00Z 14:35:00Z"),
        ("from 1775570400 - 1775572200.000", "14:00:00Z 14:30:00Z"),
        ("1h\u00a0ago", "13:35:00Z 14:35:00Z"),
        ("1.5h", "13:05:00Z 14:35:00Z"),
        ("last 0.5 hours", "14:05:00Z 14:35:00Z"),
        ("now-1.5h..now", "13:05:00Z 14:35:00Z"),
        ("14:00Z-14:30Z", "14:00:00Z 14:30:00Z"),
        ("14:00 UTC to 14:30 UTC", "14:00:00Z 14:30:00Z"),
        ("since 14:00Z", "14:00:00Z 14:35:00Z"),
        ("half an hour ago", "14:05:00Z 14:35:00Z"),
        ("two hours ago to one hour ago", "12:35:00Z 13:35:00Z"),
        ("the last thirty minutes", "14:05:00Z 14:35:00Z"),
        ("previous hour", "13:35:00Z 14:35:00Z"),
        ("last_1h", "13:35:00Z 14:35:00Z"),
        ("now()-1h", "13:35:00Z 14:35:00Z"),
        ("2026-04-07T14:00:00Z\u20132026-04-07T14:30:00Z", "14:00:00Z 14:30:00Z"),
        ("now-1h \u2192 now", "13:35:00Z 14:35:00Z"),
        ("2026-04-07 14:00-14:30 UTC", "14:00:00Z 14:30:00Z"),
    ],
)
def test_each_form_is_one_absolute_range(text: str, expected: str) -> None:
    start, end = expected.split()
    when = parse_time_range(text, NOW)
    assert when.text == f"2026-04-07T{start}/2026-04-07T{end}"
    assert when.assumed == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14:00-14:30", "2026-04-07T14:00:00Z/2026-04-07T14:30:00Z"),
        ("9:05 - 9:10:30", "2026-04-07T09:05:00Z/2026-04-07T09:10:30Z"),
        ("from 13:00 to 14:00", "2026-04-07T13:00:00Z/2026-04-07T14:00:00Z"),
        ("23:00-01:00", "2026-04-06T23:00:00Z/2026-04-07T01:00:00Z"),
        ("15:00-16:00", "2026-04-06T15:00:00Z/2026-04-06T16:00:00Z"),
        ("2026-04-07 14:00-14:30", "2026-04-07T14:00:00Z/2026-04-07T14:30:00Z"),
        ("13:00 to now", "2026-04-07T13:00:00Z/2026-04-07T14:35:00Z"),
        ("today", "2026-04-07T00:00:00Z/2026-04-07T14:35:00Z"),
        ("Yesterday", "2026-04-06T00:00:00Z/2026-04-07T00:00:00Z"),
    ],
)
def test_a_time_of_day_is_the_latest_one_and_its_zone_is_assumed(text: str, expected: str) -> None:
    when = parse_time_range(text, NOW)
    assert when.text == expected
    assert when.assumed == "no zone given: UTC assumed"


@pytest.mark.parametrize(
    "text", ["2026-04-07T14:00:00/PT30M", "2026-04-06/2026-04-07", "PT30M/2026-04-07 14:30"]
)
def test_a_missing_zone_is_assumed_and_said(text: str) -> None:
    assert parse_time_range(text, NOW).assumed == "no zone given: UTC assumed"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not understood"),
        ("whenever", "not understood"),
        ("/", "not understood"),
        ("..", "not understood"),
        ("last", "not understood"),
        ("30", "not understood"),
        ("ago", "not understood"),
        ("soon ago", "not understood"),
        ("-", "not understood"),
        ("--1h", "not understood"),
        ("-1mo", "no fixed length"),
        ("2 months ago", "no fixed length"),
        ("0m ago", "before the end"),
        ("to", "not understood"),
        ("now to ", "not understood"),
        ("now to now-1h", "before the end"),
        ("17755704001/17755704002", "not understood"),
        ("1775570400123456789", "not understood"),
        ("9999999999", "before the end"),
        ("30M", "not understood"),
        ("1.5.5h", "not understood"),
        (".5h", "not understood"),
        ("25:00", "not understood"),
        ("14:60-15:00", "not understood"),
        ("14:00-15:00", "ends in the future"),
        ("14:00-", "not understood"),
        ("٣٠m", "not understood"),
        ("now+1h..now", "not understood"),
        ("now-..now", "not understood"),
        ("now-soon..now", "needs a duration"),
        ("2026-04-07T24:00:00Z/PT1H", "not understood"),
        ("x" * 10_000, "not understood"),
        ("PT30M/PT30M", "two durations"),
        ("0m", "before the end"),
        ("PT0S", "before the end"),
        ("now..now-1h", "before the end"),
        ("2026-04-07T14:30:00Z/2026-04-07T14:00:00Z", "before the end"),
        ("2026-04-07T14:00:00Z/2026-04-07T14:46:00Z", "future"),
        ("2030-01-01T00:00:00Z/PT1H", "future"),
        ("last 31d", "30 days"),
        ("last 5w", "30 days"),
        ("P1M", "no fixed length"),
        ("P1Y", "no fixed length"),
        ("P1M/2026-04-07T14:00:00Z", "no fixed length"),
        ("last 2 months", "no fixed length"),
        ("last 1y", "no fixed length"),
        ("1mo", "no fixed length"),
        ("999999999w", "calendar"),
        ("0001-01-01T00:00:00+23:00/PT1H", "calendar"),
    ],
)
def test_each_refusal_says_why_without_the_text(text: str, reason: str) -> None:
    with pytest.raises(InvalidArguments, match=reason) as refused:
        parse_time_range(text, NOW)
    assert len(refused.value.message) < 400


def test_a_little_ahead_of_our_clock_is_accepted() -> None:
    parse_time_range("2026-04-07T14:00:00Z/2026-04-07T14:45:00Z", NOW)


instants = st.datetimes(datetime(2026, 1, 1), datetime(2026, 4, 7)).map(  # noqa: DTZ001
    lambda at: at.replace(microsecond=0)
)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
seconds = st.integers(1, int(MAX_RANGE.total_seconds()))


@given(instants, seconds, zones, zones)
def test_any_two_zoned_instants_are_the_interval_between_them(
    start: datetime, length_s: int, one: timezone, other: timezone
) -> None:
    begin = start.replace(tzinfo=UTC)
    end = begin + timedelta(seconds=length_s)
    later = end + timedelta(days=1)
    text = f"{begin.astimezone(one).isoformat()}/{end.astimezone(other).isoformat()}"
    interval = parse_time_range(text, later).interval
    assert (interval.start, interval.end) == (begin, end)
    assert interval.start.tzinfo is UTC


@given(seconds)
def test_all_spellings_of_a_duration_agree(length_s: int) -> None:
    ends_now = parse_time_range(f"last {length_s}s", NOW).interval
    assert ends_now == parse_time_range(f"now-{length_s}s..now", NOW).interval
    assert ends_now == parse_time_range(f"PT{length_s}S/2026-04-07T14:35:00Z", NOW).interval
    assert ends_now.end - ends_now.start == timedelta(seconds=length_s)


@given(st.text(max_size=60) | st.text("0123456789nowPTMHDSZ:/.-+ lasty", max_size=40))
def test_any_text_is_a_sane_interval_or_refused(text: str) -> None:
    try:
        interval = parse_time_range(text, NOW).interval
    except InvalidArguments:
        return
    assert interval.start < interval.end <= NOW + timedelta(minutes=10)
    assert interval.end - interval.start <= MAX_RANGE


@pytest.mark.parametrize("text", ["last 37m", "now-3h..now-1h", "2026-04-07T13:00:00.250Z/PT1H"])
def test_the_echoed_range_is_the_same_range_again(text: str) -> None:
    when = parse_time_range(text, NOW)
    assert parse_time_range(when.text, NOW).interval == when.interval


@pytest.mark.parametrize("text", ["", "P", "PT", "soon", "5", "m", "1h x"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None
