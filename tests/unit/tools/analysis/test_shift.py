"""How far a series left what is usual: both ways, with floors, and since when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.shift import CAP, shift
from tools.analysis.usual import quantile

STEP = 60.0
START = 120 * STEP


def series(*window: float, usual: float = 0.2) -> list[tuple[float, float]]:
    before = [(n * STEP, usual * (1 + 0.02 * (n % 5))) for n in range(120)]
    return [*before, *((START + n * STEP, value) for n, value in enumerate(window))]


def moved(*window: float, role: str = "latency", unit: str = "seconds", usual: float = 0.2):  # type: ignore[no-untyped-def]
    end = START + len(window) * STEP
    return shift(series(*window, usual=usual), START, end, role, unit, STEP)  # type: ignore[arg-type]


def test_rise_and_drop_are_distinguished() -> None:
    up, down = moved(0.2, 0.9, 0.9, 0.9), moved(0.2, 0.01, 0.01, 0.01)

    assert up.up > 10 > up.down
    assert down.down > 5 > down.up


def test_single_spike_in_a_noisy_signal_scores_low() -> None:
    assert moved(0.2, 0.2, 9.0, 0.2, 0.2).up < 3


def test_a_lone_sample_of_five_minutes_is_no_spike() -> None:
    points = [(at * 5, value) for at, value in series(0.2, 0.2, 9.0)]
    found = shift(points, 5 * START, 5 * START + 900, "latency", "seconds", 5 * STEP)

    assert found is not None
    assert found.up > 100


@pytest.mark.parametrize("role", ["cpu", "pool", "memory", "disk"])
def test_a_filling_resource_is_judged_by_its_newest_sample(role: str) -> None:
    assert moved(0.2, 0.2, 0.2, 0.99, role=role, unit="ratio").up > 10


def test_a_constant_baseline_gives_no_infinite_score() -> None:
    points = [(n * STEP, 100.0) for n in range(120)] + [(START, 0.0), (START + STEP, 0.0)]
    found = shift(points, START, START + 2 * STEP, "errors", "percent", STEP)

    assert found is not None
    assert found.down <= CAP


@pytest.mark.parametrize(
    ("role", "unit", "by"), [("latency", "seconds", 0.002), ("cpu", "percent", 1.0)]
)
def test_an_insignificant_change_stays_below_the_floor(role: str, unit: str, by: float) -> None:
    points = [(n * STEP, 1.0) for n in range(120)] + [
        (START + n * STEP, 1.0 + by) for n in range(5)
    ]
    found = shift(points, START, START + 5 * STEP, role, unit, STEP)  # type: ignore[arg-type]

    assert found is not None
    assert found.up < 3


def test_onset_is_the_start_of_the_run_despite_one_normal_sample() -> None:
    found = moved(0.2, 0.2, 0.9, 0.9, 0.2, 0.9, 0.9)

    assert found.since == START + 2 * STEP
    assert not found.from_start


def test_trouble_at_the_start_of_the_window_is_reported() -> None:
    assert moved(0.9, 0.9, 0.9).from_start


def test_trouble_at_the_start_of_the_window_has_its_earlier_onset() -> None:
    points = [
        (at, 1.6 if at >= START - 30 * STEP else value) for at, value in series(1.6, 1.6, 1.6)
    ]
    found = shift(points, START, START + 3 * STEP, "latency", "seconds", STEP, "up")

    assert found is not None
    assert (found.since, found.from_start, found.began_before) == (START - 30 * STEP, True, False)
    assert found.up > 20
    assert found.n == 90
    assert found.high > found.most


def test_an_onset_without_samples_is_unknown() -> None:
    points = [one for one in series(1.6, 1.6, 1.6) if not START - 10 * STEP <= one[0] < START]
    found = shift(points, START, START + 3 * STEP, "latency", "seconds", STEP, "up")

    assert found is not None
    assert (found.since, found.began_before) == (START, True)


def test_the_newest_sample_is_reported_separately_from_the_window() -> None:
    back = moved(0.9, 0.9, 0.9, 0.9, 0.2, 0.2)
    begun = moved(0.2, 0.2, 0.2, 0.2, 0.9, 0.9)

    assert (back.last, back.until) == (0.2, START + 4 * STEP)
    assert (begun.last, begun.last_at, begun.until) == (0.9, START + 5 * STEP, None)


@pytest.mark.parametrize("end", [(0.9,), (0.9, 0.2), (0.2, 0.9)])
def test_one_normal_sample_at_the_end_is_not_a_recovery(end: tuple[float, ...]) -> None:
    assert moved(0.2, 0.9, 0.9, *end).until is None


def test_a_level_within_the_baselines_range_ends_when_it_is_nearer_to_normal() -> None:
    spoiled = [(at, 0.5 if 80 <= n < 110 else 0.2) for n, (at, _) in enumerate(series())]
    after = [(START + n * STEP, value) for n, value in enumerate((0.5, 0.5, 0.2, 0.2))]
    found = shift([*spoiled, *after], START, START + 4 * STEP, "latency", "seconds", STEP, "up")

    assert found is not None
    assert (found.up < 3, found.since, found.until) == (True, None, START + 2 * STEP)


def test_onset_and_end_are_of_the_harmful_direction() -> None:
    points = series(0.5, 0.5, 0.5, 6.0, 6.0, 2.0, 2.0, usual=2.0)
    found = shift(points, START, START + 7 * STEP, "latency", "seconds", STEP, "down")

    assert found is not None
    assert (found.since, found.until) == (START, START + 3 * STEP)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30))
def test_no_anomalous_sample_follows_an_end(window: list[float]) -> None:
    end = START + len(window) * STEP
    found = shift(series(*window), START, end, "latency", "seconds", STEP, "up")

    assert found is not None
    after = [value for at, value in series(*window) if found.until and at >= found.until]
    assert found.last == window[-1]
    assert all(value - found.usual < 3 * found.spread for value in after)
    assert len(after) != 1


def test_too_short_a_baseline_gives_no_result() -> None:
    assert shift(series(0.9)[-5:], START, START + STEP, "latency", "seconds", STEP) is None


@given(
    st.lists(st.floats(0, 1e6), min_size=20, max_size=60),
    st.lists(st.floats(0, 1e6), min_size=1, max_size=10),
)
def test_scores_are_finite_and_one_side_is_never_negative_on_both(
    before: list[float], window: list[float]
) -> None:
    points = [*enumerate(before), *((len(before) + 1 + n, v) for n, v in enumerate(window))]
    found = shift(points, len(before) + 0.5, 1e9, "other", None, 0.0)

    assert found is not None
    assert found.size <= CAP
    assert found.low <= found.high


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 1))
def test_quantile_is_between_minimum_and_maximum(values: list[float], share: float) -> None:
    ordered = sorted(values)

    assert ordered[0] - 1e-6 <= quantile(ordered, share) <= ordered[-1] + 1e-6


@pytest.mark.parametrize(("share", "least"), [(0.0, CAP), (0.05, 50.0), (0.4, 4.0)])
def test_a_fall_has_no_ceiling(share: float, least: float) -> None:
    points = [(60.0 * n, 20.0 * (1.0 if n < 60 else share)) for n in range(70)]
    found = shift(points, 3600.0, 4200.0, "traffic", None, 60.0)

    assert found is not None
    assert found.down >= least


@pytest.mark.parametrize("last", [0.0, 1.0], ids=["to nothing", "to a twentieth"])
def test_a_slow_fall_before_the_window_is_found(last: float) -> None:
    noise = (0.0, 1.0, -1.5, 1.5, -0.5)
    steady = [20 + noise[n % 5] for n in range(76)]
    falling = [max(last, 20 * (1 - n / 55)) for n in range(60)]
    points = [(60.0 * n, value) for n, value in enumerate([*steady, *falling])]
    found = shift(points, 60.0 * 120, 60.0 * 136, "traffic", None, 60.0)

    assert found is not None
    assert found.down >= 3
    assert found.record >= 3


def bursts(every: int, height: float) -> list[tuple[float, float]]:
    values = [height if n % every == 3 else 0.1 + 0.001 * (n % 7) for n in range(120)]
    return [(n * STEP, value) for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("height", "times", "unusual"),
    [(0.9, 2, False), (1.0, 3, False), (2.5, 2, True), (0.9, 12, True)],
)
def test_larger_or_more_frequent_bursts_count(height: float, times: int, unusual: bool) -> None:
    window = [height] * times + [0.1] * (30 - times)
    points = bursts(30, 0.9) + [(START + n * STEP, value) for n, value in enumerate(window)]
    found = shift(points, START, START + 30 * STEP, "latency", "seconds", STEP, "up")

    assert found is not None
    assert (found.up >= 3, found.record > 0) == (unusual, height > 2)
