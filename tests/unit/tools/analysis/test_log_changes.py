"""Which kinds of lines are new, grown or gone, measured by the load of their product and by a day."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.log_changes import Change, Pattern, Sample, level_of, patterns_of
from tools.capabilities import LogLine

NOW_S = 1_000_000.0
HALF_HOUR_S = 1800.0
DAY_S = 86_400.0


def line(at_s: float, text: str, level: str = "error", host: str = "h1") -> LogLine:
    return LogLine(int(at_s * 1e9), level, host, text)


def spread(text: str, number: int, end_s: float, length_s: float, level: str) -> list[LogLine]:
    """Evenly over the time before `end_s`, newest first."""
    return [line(end_s - (n + 0.5) * length_s / number, text, level) for n in range(number)]


def sample(lines: Sequence[LogLine], end_s: float, length_s: float, counted: int = 0) -> Sample:
    ordered = sorted(lines, key=lambda one: -one.ts_ns)
    counts = {"cart": counted or len(ordered)}
    return Sample({"cart": ordered}, counts, end_s - length_s, end_s)


def compared(
    *kinds: tuple[str, int, int],
    level: str = "info",
    usual: tuple[int, int] = (60, 60),
    by_load: bool = True,
) -> Sequence[Pattern]:
    """Kinds of lines with how many before and after, in windows of the same length."""
    early, late = (
        [one for text, *n in (("took 5 ms", *usual), *kinds) if n[side] for one in spread(text, n[side], end, 60.0, level)]
        for side, end in ((0, NOW_S - 60), (1, NOW_S))
    )  # fmt: skip
    return patterns_of(
        sample(late, NOW_S, 60.0),
        sample(early, NOW_S - 60, 60.0),
        products=("cart", "payments"),
        by_load=by_load,
    )


def changes(*kinds: tuple[str, int, int]) -> dict[str, Change]:
    return {one.example: one.change for one in compared(*kinds) if one.change != "steady"}


def test_new_grown_and_gone_are_distinguished() -> None:
    found = changes(("refused", 0, 3), ("retrying", 5, 40), ("heartbeat", 40, 0))

    assert found == {"refused": "new", "retrying": "grown", "heartbeat": "gone"}


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [(0, 1, "new"), (5, 30, "grown"), (10, 10, "steady"), (1, 3, "steady"), (40, 0, "gone")],
)
def test_change_is_measured_against_the_expected_number(
    before: int, after: int, change: Change
) -> None:
    found = compared(("boom", before, after), by_load=False)

    assert [one.change for one in found if one.example == "boom"] == [change]


def test_lines_that_grow_with_the_load_of_their_product_did_not_change() -> None:
    found = compared(("retrying", 10, 40), usual=(60, 240))

    assert {one.change for one in found} == {"steady"}


def test_missing_rare_line_is_not_a_silence() -> None:
    assert changes(("nightly job", 3, 0)) == {}


def test_hosts_and_names_of_other_products_are_listed() -> None:
    of = [line(NOW_S - 5, "payments-db refused payments", host=host) for host in ("a", "b", "a")]
    (found,) = patterns_of(
        sample(of, NOW_S, 60.0),
        sample([], NOW_S - 60, 60.0),
        products=("cart", "payments", "payments-db"),
    )

    assert found.hosts == ("a", "b")
    assert found.names == ("payments", "payments-db")


def test_lines_that_were_not_read_are_counted() -> None:
    read = spread("boom", 100, NOW_S, HALF_HOUR_S, "error")
    (found,) = patterns_of(
        sample(read, NOW_S, HALF_HOUR_S, counted=1000), sample([], NOW_S - HALF_HOUR_S, 3600.0)
    )

    assert found.count == 1000


def of_a_day(
    now: Sequence[LogLine], hour: Sequence[LogLine], day: Sequence[LogLine]
) -> Sequence[Pattern]:
    """Errors of the last half hour against the hour and the day before it."""
    start = NOW_S - HALF_HOUR_S
    return [
        one
        for one in patterns_of(
            sample(now, NOW_S, HALF_HOUR_S),
            sample(hour, start, 3600.0),
            day=sample(day, start, DAY_S),
        )
        if one.change != "steady"
    ]


@given(st.integers(1, 20), st.integers(0, 40))
def test_errors_of_the_whole_day_are_not_new_after_a_quiet_hour(in_window: int, seed: int) -> None:
    start = NOW_S - HALF_HOUR_S
    day = spread(f"boom {seed}", 48 * in_window, start - 3600, DAY_S - 3600, "error")
    now = spread(f"boom {seed}", in_window, NOW_S, HALF_HOUR_S, "error")

    assert of_a_day(now, [], day) == []


@given(st.integers(1, 50))
def test_errors_that_never_occurred_before_are_new_in_any_number(number: int) -> None:
    usual = spread("other", 300, NOW_S - HALF_HOUR_S, DAY_S, "error")
    now = spread("boom", number, NOW_S, HALF_HOUR_S, "error")
    (found,) = of_a_day(now, [], usual)

    assert (found.change, found.count, found.before) == ("new", number, 0)


@given(st.integers(4, 50))
def test_one_burst_a_day_ago_does_not_make_errors_normal(number: int) -> None:
    start = NOW_S - HALF_HOUR_S
    burst = spread("boom", number, start - 20 * 3600, 600.0, "error")
    (found,) = of_a_day(spread("boom", number, NOW_S, HALF_HOUR_S, "error"), [], burst)

    assert (found.change, found.count, found.before) == ("grown", number, number)


def test_errors_that_began_an_hour_ago_are_reported_with_their_start() -> None:
    start = NOW_S - HALF_HOUR_S
    hour = spread("boom", 80, start, 3600.0, "error")
    (found,) = of_a_day(spread("boom", 40, NOW_S, HALF_HOUR_S, "error"), hour, hour)

    assert (found.change, found.began_before) == ("grown", True)


def test_errors_of_a_chatty_product_are_all_counted_once() -> None:
    served = spread("served", 500, NOW_S, 60.0, "info")
    bad = spread("boom", 7, NOW_S, HALF_HOUR_S, "error")
    cut = sample([*served, bad[0]], NOW_S, HALF_HOUR_S, counted=15_000)
    own = Sample({"cart": bad}, {"cart": 7}, cut.start_s, cut.end_s)
    now = Sample(cut.lines, cut.counts, cut.start_s, cut.end_s, errors=own)
    usual = sample(spread("served", 500, cut.start_s, 3600.0, "info"), cut.start_s, 3600.0, 30_000)

    (found,) = [one for one in patterns_of(now, usual) if one.level == "error"]
    assert (found.change, found.count) == ("new", 7)


def test_minutes_without_a_recording_are_not_a_silence() -> None:
    busy = spread("served", 120, NOW_S - 1800, 120.0, "info")
    sparse = spread("served", 3, NOW_S, HALF_HOUR_S, "info")

    assert sample(busy, NOW_S, HALF_HOUR_S).covered_s <= 180
    assert sample(sparse, NOW_S, HALF_HOUR_S).covered_s == HALF_HOUR_S


@pytest.mark.parametrize(
    ("level", "text", "expected"),
    [
        ("WARNING", "x", "warn"),
        ("err", "x", "error"),
        ("", "2026 ERROR no route", "error"),
        ("unknown", "replication lag exceeded 600 seconds", "error"),
        ("", "instance is available", ""),
        ("info", "0 failed", "info"),
    ],
)
def test_level_comes_from_the_field_then_the_line_then_its_words(
    level: str, text: str, expected: str
) -> None:
    assert level_of(level, text) == expected
