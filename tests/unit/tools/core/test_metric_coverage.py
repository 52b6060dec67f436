"""core__sweep_metrics on what an all-clear needs: what exists, was compared, moved or disappeared."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.packs import minutes
from tests.unit.tools.core.test_sweeps import sweep
from tools.core.sweep_metrics import SweepMetrics


def series(
    name: str, value: Callable[[int], float | None], product: str = "web", **labels: str
) -> Mapping[str, object]:
    """A sample a minute over four hours; `value` takes the minutes until now."""
    at = [(when, value(240 - number)) for number, when in enumerate(minutes(240))]
    points = [one for one in at if one[1] is not None]
    return {"name": name, "labels": {"service": product, **labels}, "points": points}


def wavers(ago: int) -> float:
    return 1 + 0.01 * (ago % 5)


async def swept(*rows: Mapping[str, object], given: str = "{}") -> dict[str, Any]:
    return await sweep(SweepMetrics, given, metrics=list(rows))


async def test_traffic_that_fell_to_zero_has_disappeared_and_scores_highest() -> None:
    found = await swept(
        series("http_requests_per_second", lambda ago: 20 * wavers(ago) if ago > 15 else 0.0),
        series("http_requests_per_second", lambda ago: 20 * wavers(ago), "cart"),
    )

    (gone,) = found["disappeared"]
    assert (gone["product"], gone["role"], gone["how"]) == ("web", "traffic", "zero")
    assert gone["since"] == "2026-11-20T13:45:00Z"
    assert found["shifts"][0]["score"] > 100


async def test_traffic_that_fell_slowly_to_zero_has_disappeared() -> None:
    found = await swept(
        series(
            "http_requests_per_second",
            lambda ago: (19 + 2 * (ago % 2)) * min(1.0, max(0, ago - 5) / 55),
        )
    )

    (gone,) = found["disappeared"]
    assert (gone["product"], gone["how"]) == ("web", "zero")


async def test_a_product_with_sporadic_requests_has_not_lost_them() -> None:
    found = await swept(
        series("http_requests_per_second", lambda ago: 0.0 if ago % 30 < 16 else 20 * wavers(ago))
    )

    assert found["disappeared"] == []


async def test_a_series_that_ended_and_a_target_that_is_down_have_disappeared() -> None:
    found = await swept(
        series("http_request_duration_seconds_p99", lambda ago: wavers(ago) if ago > 9 else None),
        series("cpu_usage_percent", wavers),
        series("up", lambda ago: float(ago > 6), "cart"),
    )

    gone = {one["product"]: (one["role"], one["how"]) for one in found["disappeared"]}
    assert gone == {"web": ("latency", "ended"), "cart": ("other", "down")}


async def test_roles_without_a_baseline_are_unchecked() -> None:
    found = await swept(
        series("cpu_usage_percent", lambda ago: 20 * wavers(ago)),
        series("memory_usage_percent", lambda ago: 20 * wavers(ago) if ago < 5 else None),
    )

    assert found["within"] == {"web": "cpu"}
    assert found["unchecked"] == {"web": "memory"}
    assert found["unread"] == 0


@pytest.mark.parametrize("name", ["zq_17", "vorrat"])
@pytest.mark.parametrize("factor", [4.0, 0.2], ids=["rises", "falls"])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e9])
async def test_an_unknown_series_is_compared_with_any_name_unit_and_direction(
    name: str, factor: float, scale: float
) -> None:
    found = await swept(
        series(name, lambda ago: scale * 10 * wavers(ago) * (1.0 if ago > 10 else factor)),
        series(name, lambda ago: scale * 10 * wavers(ago), "cart"),
    )

    (moved,) = found["shifts"]
    assert (moved["product"], moved["signal"], moved["role"]) == ("web", name, "other")
    assert moved["direction"] == ("up" if factor > 1 else "down")
    assert moved["score"] >= 3
    assert found["unnamed"] == {"cart": "0/1", "web": "1/1"}


@pytest.mark.parametrize("whole", [1.0, 100.0])
async def test_a_falling_unknown_success_share_counts_as_errors(whole: float) -> None:
    found = await swept(
        series("sr_7", lambda ago: whole * (1 - 0.001 * (ago % 2) - (0.05 if ago < 10 else 0)))
    )

    (moved,) = found["shifts"]
    assert (moved["role"], moved["direction"], moved["inferred"]) == ("errors", "down", True)
    assert moved["unit"] == ("ratio" if whole == 1 else "percent")
    assert found["unchecked"] == {}


async def test_an_unknown_counter_is_read_as_a_rate() -> None:
    total: dict[int, float] = {}
    for ago in range(240, -1, -1):
        total[ago] = total.get(ago + 1, 5e6) + 600 * wavers(ago) * (1 if ago > 12 else 5)
    found = await swept(series("seen_7", lambda ago: total[ago]))

    (moved,) = found["shifts"]
    assert moved["unit"] == "per second"
    assert moved["worst"] == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize(
    ("name", "labels"),
    [("took_7", {"quantile": "0.99"}), ("took_7_p95", {}), ("rt", {"stat": "p90"})],
)
async def test_an_unknown_quantile_series_is_a_duration(
    name: str, labels: Mapping[str, str]
) -> None:
    def slow(ago: int) -> float:
        return 0.4 * wavers(ago) * (9 if ago < 10 else 1)

    found = await swept(series(name, slow, **labels))

    (moved,) = found["shifts"]
    assert (moved["role"], moved["direction"], moved["inferred"]) == ("latency", "up", True)


@pytest.mark.parametrize("name", ["cpu_usage_percent", "http_request_duration_seconds_p99", "x9"])
@pytest.mark.parametrize(("share", "direction"), [(1.2, "up"), (0.8, "down")])
async def test_a_value_beyond_all_earlier_ones_is_a_record(
    name: str, share: float, direction: str
) -> None:
    found = await swept(
        series(name, lambda ago: wavers(ago) * (1.0 if ago > 10 else share)),
        series(name, wavers, "cart"),
    )

    assert [(one["product"], one["direction"]) for one in found["records"]] == [("web", direction)]


async def test_a_value_reached_before_is_not_a_record() -> None:
    found = await swept(series("x9", lambda ago: 3.0 if 90 < ago < 100 or ago < 5 else wavers(ago)))

    assert found["records"] == []


async def test_failures_that_never_occurred_are_checked() -> None:
    found = await swept(series("http_requests_total", lambda ago: 6e5 - 600.0 * ago, code="200"))

    assert found["within"] == {"web": "errors traffic"}
    assert found["unchecked"] == {}
