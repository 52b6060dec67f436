"""core__sweep_metrics on samples that are missing and on targets that are not reached."""

from collections.abc import Mapping, Sequence

import pytest

from tests.packs import minutes
from tests.unit.tools.core.test_sweeps import sweep
from tools.core.sweep_metrics import SweepMetrics

P99 = "http_request_duration_seconds_p99"
CPU = "cpu_usage_percent"


def metric(
    name: str, missing: Sequence[int] = (), value: float = 0.2, *, young: bool = False
) -> Mapping[str, object]:
    """A sample a minute but for those so many minutes ago; a recording holds each for a minute more."""
    ago = [(240 - number, at) for number, at in enumerate(minutes(240))]
    points = [(at, value + 0.001 * (n % 5)) for n, at in ago if n not in missing]
    return {"name": name, "labels": {"service": "web"}, "points": points[-14:] if young else points}


def up(*, down_for: int, known: int = 240) -> Mapping[str, object]:
    points = [(at, float(n <= 240 - down_for)) for n, at in enumerate(minutes(240))]
    return {"name": "up", "labels": {"service": "web"}, "points": points[-known:]}


async def gaps(*rows: Mapping[str, object], given: str = "{}") -> list[dict[str, object]]:
    found = await sweep(SweepMetrics, given, metrics=list(rows))
    told: list[dict[str, object]] = found["gaps"]
    return told


async def test_an_ended_series_is_reported_with_its_roles() -> None:
    ended = range(7)
    found = await gaps(metric(P99, ended), metric(CPU, ended, 20.0))

    (gap,) = found
    assert (gap["product"], gap["roles"], gap.get("until")) == ("web", "cpu latency", None)
    assert gap["since"] == "2026-11-20T13:54:00Z"


@pytest.mark.parametrize(("late", "told"), [(6, []), (7, ["latency"])])
async def test_a_backend_with_uniformly_late_samples_has_no_gap(late: int, told: list[str]) -> None:
    found = await gaps(metric(P99, range(late)))

    assert [gap["roles"] for gap in found] == told


async def test_a_series_that_is_later_than_the_others_has_a_gap() -> None:
    found = await gaps(metric(P99, range(5)), metric(CPU, (), 20.0))

    assert [gap["roles"] for gap in found] == ["latency"]


async def test_a_hole_in_the_range_is_reported_with_both_ends() -> None:
    (gap,) = await gaps(metric(P99, range(10, 15)))

    assert (gap["since"], gap["until"]) == ("2026-11-20T13:46:00Z", "2026-11-20T13:51:00Z")


async def test_a_hole_before_the_range_is_not_reported() -> None:
    assert await gaps(metric(P99, range(100, 110))) == []


async def test_a_series_that_ended_before_the_range_is_not_called_too_young() -> None:
    found = await sweep(SweepMetrics, metrics=[metric(P99, range(60)), metric(CPU, (), 20.0)])

    assert (found["gaps"][0]["roles"], found["too_short"]) == ("latency", {})


async def test_another_series_of_the_same_role_fills_the_gap() -> None:
    assert await gaps(metric(P99, range(6)), metric("http_request_duration_seconds_p50")) == []


@pytest.mark.parametrize(("requests", "told"), [(0.0, []), (40.0, ["latency"])])
async def test_without_requests_missing_latency_is_not_a_gap(
    requests: float, told: list[str]
) -> None:
    labels = {"service": "web"}
    at = minutes(240)
    rate = [(when, 40.0 if n < 230 else requests) for n, when in enumerate(at)]
    counted = [(when, sum(value * 60 for _, value in rate[:n])) for n, (when, _) in enumerate(rate)]
    traffic = {"name": "http_requests_total", "labels": labels, "points": counted}

    found = await gaps(metric(P99, range(8)), traffic)
    assert [gap["roles"] for gap in found] == told


async def test_an_unreachable_target_is_reported_with_its_onset() -> None:
    (gap,) = await gaps(up(down_for=3), metric(P99))

    assert (gap["product"], gap["is_down"], gap["signal"]) == ("web", True, "up")
    assert gap["since"] == "2026-11-20T13:58:00Z"


async def test_a_young_unreachable_target_is_reported() -> None:
    (gap,) = await gaps(up(down_for=2, known=14), metric(P99, young=True))

    assert gap["is_down"] is True


async def test_a_reachable_target_is_not_reported() -> None:
    assert await gaps(up(down_for=0), metric(P99)) == []


async def test_a_target_that_was_never_reachable_is_reported_as_down_since_before() -> None:
    (gap,) = await gaps(up(down_for=241), metric(P99))

    assert (gap["product"], gap["signal"], gap["is_down"]) == ("web", "up", True)
    assert gap["since_before"] is True


async def test_a_target_that_went_down_before_the_baseline_has_its_onset() -> None:
    (gap,) = await gaps(up(down_for=220), metric(P99))

    assert (gap["is_down"], gap["since_before"]) == (True, False)
    assert "2026-11-20T10:20:00Z" <= str(gap["since"]) <= "2026-11-20T10:31:00Z"


async def test_a_series_that_ended_before_the_baseline_is_reported_with_its_roles() -> None:
    found = await gaps(metric(P99, range(180)), metric(CPU, (), 20.0))

    (gap,) = found
    assert (gap["roles"], gap.get("until")) == ("latency", None)
    assert "2026-11-20T10:59:00Z" <= str(gap["since"]) <= "2026-11-20T11:10:00Z"


async def test_an_ended_series_without_a_role_is_reported_by_its_name() -> None:
    found = await sweep(SweepMetrics, metrics=[metric("zorbs_now", range(12)), metric("flaps_now")])

    (gap,) = found["gaps"]
    assert (gap["roles"], gap["signal"]) == ("other", "zorbs_now")
    (gone,) = found["disappeared"]
    assert (gone["how"], gone["signal"], gone["usual"]) == ("ended", "zorbs_now", 0.202)


@pytest.mark.parametrize(("idle", "told"), [((), [("zorbs_done_total", "zero")]), ((60,), [])])
async def test_a_counter_that_freezes_for_the_first_time_is_reported(
    idle: Sequence[int], told: object
) -> None:
    total, points = 0.0, []
    for number, at in enumerate(minutes(240)):
        ago = 240 - number
        stands = ago < 25 or any(each <= ago < each + 15 for each in idle)
        total += 0.0 if stands else 90.0 + number % 5
        points.append((at, total))
    row = {"name": "zorbs_done_total", "labels": {"service": "web"}, "points": points}
    found = await sweep(SweepMetrics, metrics=[row, metric(P99)])

    assert [(one["signal"], one["how"]) for one in found["disappeared"]] == told


async def test_target_health_is_read_together_with_restart_metrics() -> None:
    others = [
        metric("kube_pod_container_status_restarts_total", (), 1.0),
        metric("container_start_time_seconds", (), 1.0),
        metric("process_start_time_seconds", (), 1.0),
    ]
    (gap,) = await gaps(up(down_for=2), *others)

    assert gap["is_down"] is True
