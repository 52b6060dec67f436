"""The baseline and its deviations: the traps of a score, each on the shape of data that caused it."""

from datetime import UTC, datetime, timedelta

import pytest

from tools.baseline import Baseline, baseline, direction, sustained_from

T0 = datetime(2026, 4, 7, tzinfo=UTC)
DAY = timedelta(hours=24)


def usual(values: list[float], spacing_s: float = 60.0, unit: str | None = None) -> Baseline:
    return baseline(values, DAY, spacing_s, unit)


def every(seconds: float, values: list[float | None]) -> list[tuple[datetime, float]]:
    """Points so far apart; None is a gap."""
    at = (T0 + timedelta(seconds=seconds * index) for index in range(len(values)))
    return [(when, value) for when, value in zip(at, values, strict=True) if value is not None]


@pytest.mark.parametrize(
    ("number", "spacing_s", "enough"),
    [
        (60, 60, True),
        (59, 60, False),
        (20, 300, True),
        (19, 300, False),
        (360, 10, True),
        (300, 10, False),
    ],
)
def test_an_hour_and_twenty_samples_are_required_at_any_step(
    number: int, spacing_s: float, enough: bool
) -> None:
    known = usual([1.0, 2.0] * (number // 2) + [1.0] * (number % 2), spacing_s)
    assert known.sufficient is enough
    assert known.anomalous(99.0) is enough
    assert ("insufficient baseline" in known.missing()) is True


def test_two_percent_on_an_idle_series_is_not_significant() -> None:
    idle = usual([100.0, 100.001] * 50)
    assert idle.z_score(102.0) == pytest.approx(2.0, abs=0.1)
    assert not idle.anomalous(105.0)  # five spreads, but only five per cent
    assert idle.anomalous(111.0)


@pytest.mark.parametrize(
    ("unit", "middle", "value", "news"),
    [
        ("seconds", 0.001, 0.0025, False),
        ("seconds", 0.001, 0.0035, True),
        ("ratio", 0.0, 0.001, False),
        ("ratio", 0.0, 0.01, True),
        ("percent", 0.0, 0.1, False),
        (None, 0.0, 0.001, True),
    ],
)
def test_the_smallest_effect_has_common_units(
    unit: str | None, middle: float, value: float, news: bool
) -> None:
    assert usual([middle] * 100, unit=unit).anomalous(value) is news


def test_an_outlier_in_the_baseline_does_not_hide_a_new_anomaly() -> None:
    spiky = usual([1.0, 1.1] * 50 + [3600.0])
    assert spiky.anomalous(3.0)


def test_an_earlier_incident_in_the_baseline_does_not_hide_a_new_one() -> None:
    known = usual([1.0, 1.1, 1.2] * 100 + [9.0] * 60)
    assert known.anomalous(5.0)


def test_two_levels_are_both_normal() -> None:
    known = usual([0.0, 10.0] * 50)
    assert not known.anomalous(10.0)
    assert not known.anomalous(0.0)


def test_drops_count_as_rises_do() -> None:
    known = usual([9.0, 10.0, 11.0] * 40)
    assert known.anomalous(2.0)
    assert (known.z_score(2.0) or 0.0) < 0


def test_a_constant_baseline_has_no_score_but_a_change_from_it_is_anomalous() -> None:
    calm = usual([0.0] * 100)
    assert (calm.constant, calm.z_score(5.0), calm.anomalous(5.0)) == (True, None, True)
    assert not calm.anomalous(0.0)


def test_coverage_is_the_share_of_expected_samples() -> None:
    assert usual([1.0] * 720).coverage == 0.5
    assert usual([1.0] * 2000).coverage == 1.0
    assert usual([]).coverage == 0.0


@pytest.mark.parametrize(
    ("spacing_s", "values", "begin"),
    [
        (60, [1, 99, 1, 99, 1, 99], None),
        (60, [1, 99, 99, 1], None),  # two minutes
        (60, [1, 99, 99, 99], 1),
        (60, [1, 99, None, 99, 1], 1),  # a gap does not end it
        (10, [1.0] * 5 + [99.0] * 14, None),  # 140 s
        (10, [1.0] * 5 + [99.0] * 16, 5),
        (300, [1, 99, 1], None),  # one sample covers five minutes, and is one sample
        (300, [1, 99, 99], 1),
        (300, [99], 0),  # there is no other
        (60, [1, 99, -99, 99, 1], None),  # both ways is noise
        (60, [], None),
    ],
)
def test_duration_is_counted_in_seconds(
    spacing_s: float, values: list[float | None], begin: int | None
) -> None:
    known = usual([1.0, 2.0] * 400, spacing_s)
    expected = None if begin is None else T0 + timedelta(seconds=spacing_s * begin)
    assert sustained_from(every(spacing_s, values), known, spacing_s) == expected


def test_the_direction_of_a_change_is_reported() -> None:
    known = usual([9.0, 11.0] * 50)
    assert [direction(known, value) for value in (5.0, 10.0, 15.0)] == ["down", "flat", "up"]
