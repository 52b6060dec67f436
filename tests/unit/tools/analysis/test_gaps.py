"""Samples that are missing: only of what came all along, and the newest gap before any other."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.gaps import Gap, gap_in

STEP = 60.0
START, END = 120 * STEP, 150 * STEP


def every_minute(*without: int, first: int = 0) -> list[tuple[float, float]]:
    return [(n * STEP, 1.0) for n in range(first, 151) if n not in without]


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        ((), None),
        ((140,), None),
        ((140, 141), Gap(139 * STEP, 142 * STEP)),
        ((118, 119, 120, 121, 122), Gap(117 * STEP, 123 * STEP)),
        ((117, 118, 119, 120), None),
        ((148, 149, 150), None),
        ((147, 148, 149, 150), Gap(146 * STEP, None)),
        ((130, 131, 132, 133, 147, 148, 149, 150), Gap(146 * STEP, None)),
        ((124, 125, 130, 131, 132), Gap(129 * STEP, 133 * STEP)),
    ],
    ids=["none", "one sample", "two samples", "into the range", "mostly before the range",
         "late samples", "to the end", "a hole and the end", "the longer one"],
)  # fmt: skip
def test_a_gap_longer_than_missed_scrapes_is_reported(
    missing: Sequence[int], found: Gap | None
) -> None:
    assert gap_in(every_minute(*missing), START, END, STEP) == found


def test_sporadic_samples_have_no_gap() -> None:
    rare = [point for number, point in enumerate(every_minute()) if number % 7 == 0]

    assert gap_in(rare, START, END, STEP) is None
    assert gap_in(rare[-6:], START, END, STEP) is None


def test_an_earlier_monitoring_outage_hides_no_gap() -> None:
    points = every_minute(*range(60, 80), *range(147, 151))

    assert gap_in(points, START, END, STEP) == Gap(146 * STEP, None)


def test_a_young_series_has_a_gap_as_well() -> None:
    young = every_minute(139, 140, 141, first=130)

    assert gap_in(young, START, END, STEP) == Gap(138 * STEP, 142 * STEP)
    assert gap_in(young[:5], START, END, STEP) is None


def test_samples_after_the_range_are_ignored() -> None:
    points = every_minute(147, 148, 149, 150)

    assert gap_in([*points, (END + 9 * STEP, 1.0)], START, END, STEP) == Gap(146 * STEP, None)


@given(st.sets(st.integers(0, 150)), st.integers(6, 150))
def test_a_gap_has_no_values(missing: set[int], first: int) -> None:
    points = every_minute(*missing, first=first)
    found = gap_in(points, START, END, STEP)

    inside = [at for at, _ in points if found and found.since < at < (found.until or END)]
    assert inside == []
