"""core__sweep_metrics against earlier days, and on what grows for hours."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.packs import minutes
from tests.unit.tools.core.test_sweeps import sweep
from tools.core.sweep_metrics import SweepMetrics

DAY = 1440


def series(
    name: str, value: Callable[[int], float], days: float = 1.5, product: str = "web"
) -> Mapping[str, object]:
    """A sample a minute; `value` takes the minutes until now."""
    number = int(days * DAY)
    points = [(when, value(number - n)) for n, when in enumerate(minutes(number))]
    return {"name": name, "labels": {"service": product}, "points": points}


async def swept(*rows: Mapping[str, object]) -> dict[str, Any]:
    return await sweep(SweepMetrics, metrics=list(rows))


def rated(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(one["product"], one["role"]) for one in found["shifts"] if one["score"] >= 3]


def peak(ago: int, every: int = DAY) -> float:
    """A peak of forty minutes at this time of the day."""
    return (90.0 if ago % every < 20 or ago % every > every - 20 else 20.0) + ago % 5


async def test_a_daily_peak_is_normal() -> None:
    found = await swept(series("http_requests_per_second", peak))

    assert rated(found) == []
    assert found["time_of_day"] == {"web": "traffic"}
    assert found["within"] == {"web": "traffic"}


async def test_a_peak_without_one_yesterday_is_reported() -> None:
    found = await swept(series("http_requests_per_second", lambda ago: peak(ago, 10 * DAY)))

    assert rated(found) == [("web", "traffic")]


async def test_a_higher_peak_than_yesterday_is_reported() -> None:
    found = await swept(
        series("http_requests_per_second", lambda ago: peak(ago) * (3 if ago < 30 else 1))
    )

    assert rated(found) == [("web", "traffic")]


@pytest.mark.parametrize(("days", "told"), [(1.5, [("web", "latency")]), (7.5, [])])
async def test_latency_needs_two_matching_earlier_days(days: float, told: list[object]) -> None:
    found = await swept(series("http_request_duration_seconds_p99", peak, days))

    assert rated(found) == told


async def test_failures_are_never_normal() -> None:
    share = lambda ago: 0.2 if ago % DAY < 20 else 0.001  # noqa: E731
    found = await swept(series("http_request_error_ratio", share, 7.5))

    assert rated(found) == [("web", "errors")]


@pytest.mark.parametrize("name", ["app_jobs_backlog", "wartend_7"])
async def test_a_queue_that_grows_for_six_hours_is_reported_under_any_name(name: str) -> None:
    found = await swept(series(name, lambda ago: 10 + 250.0 * max(0, 360 - ago)))

    (grows,) = found["shifts"]
    assert grows["signal"] == name
    assert grows["worst"] > 50_000
    assert grows["direction"] == "up"


async def test_leaking_memory_is_reported_with_the_time_until_it_is_full() -> None:
    found = await swept(
        series("memory_usage_percent", lambda ago: 40 + 45 * max(0, 360 - ago) / 360 + ago % 3 / 9)
    )

    (grows,) = found["shifts"]
    assert grows["full_in_s"] == pytest.approx(2 * 3600, rel=0.2)
    assert found["within"] == {"web": ""}


P99 = "http_request_duration_seconds_p99"
REQUESTS = "http_requests_per_second"


@pytest.mark.parametrize("hours", [3, 9, 20])
async def test_trouble_older_than_the_baseline_is_reported_with_its_onset(hours: int) -> None:
    found = await swept(
        series(P99, lambda ago: (1.2 if ago < 60 * hours else 0.2) + 0.001 * (ago % 5))
    )

    assert rated(found) == [("web", "latency")]
    assert found["within"] == {"web": ""}
    (told,) = found["shifts"]
    assert (told["under_way"], told["usual"]) == (True, pytest.approx(0.2, abs=0.01))
    assert (14 - hours) % 24 - 1 <= int(told["since"][11:13]) <= (14 - hours) % 24


async def test_a_missing_daily_peak_is_reported() -> None:
    found = await swept(
        series(REQUESTS, lambda ago: 20.0 + ago % 5 if ago < 60 else 4 * peak(ago, DAY), 1.5)
    )

    assert rated(found) == [("web", "traffic")]
    assert found["shifts"][0]["direction"] == "down"


async def test_a_peak_of_yesterday_alone_is_ignored_when_last_week_is_known() -> None:
    found = await swept(
        series(REQUESTS, lambda ago: 90.0 if DAY - 60 < ago < DAY + 60 else 20 + ago % 5, 8)
    )

    assert rated(found) == []


@pytest.mark.parametrize("days", [0.5, 8])
async def test_load_that_changed_hours_ago_is_reported_when_yesterday_is_known(
    days: float,
) -> None:
    found = await swept(series(REQUESTS, lambda ago: 90.0 if ago < 240 else 20 + ago % 5, days))

    assert rated(found) == ([("web", "traffic")] if days > 1 else [])


async def test_the_compared_day_is_reported() -> None:
    day, short = [
        await swept(series(P99, lambda ago: 0.2 + 0.001 * (ago % 5), days)) for days in (1.5, 0.15)
    ]

    assert day["day_from"] == "2026-11-19T08:00:00Z"
    assert "day_from" not in short


@pytest.mark.parametrize(
    ("name", "share", "told"),
    [
        ("http_request_error_ratio", 0.38, [0.05]),
        ("http_request_error_ratio", 0.06, [0.05]),
        ("http_request_error_ratio", 0.03, [0.01]),
        ("http_request_error_ratio", 0.004, []),
        ("http_success_ratio", 0.62, [0.95]),
        ("http_success_ratio", 0.97, [0.99]),
        ("http_success_ratio", 0.995, []),
    ],
)
async def test_a_constant_failure_share_is_reported(
    name: str, share: float, told: list[float]
) -> None:
    found = await swept(series(name, lambda ago: share + 0.0001 * (ago % 5)))

    assert [one["limit"] for one in found["standing"]] == told


@pytest.mark.parametrize(("others", "told"), [(0.002, ["web"]), (0.02, [])])
async def test_an_unknown_share_unlike_the_others_all_the_time_is_reported(
    others: float, told: list[str]
) -> None:
    def spoiled(product: str, share: float) -> Mapping[str, object]:
        return series("spoiled", lambda ago: share + 0.0001 * (ago % 5), product=product)

    found = await swept(spoiled("web", 0.03), spoiled("cart", others), spoiled("db", others))

    assert [one["product"] for one in found["standing"]] == told


@pytest.mark.parametrize("ended", [60, 400, 1000])
async def test_an_unknown_gauge_that_ended_is_reported_at_any_age(ended: int) -> None:
    points = [(at, 900.0 + n % 5) for n, at in enumerate(minutes(2160)[:-ended])]
    fill = {"name": "tank_7", "labels": {"service": "web"}, "points": points}
    found = await swept(fill, series(P99, lambda ago: 0.2 + ago % 5 / 1000))

    (gone,) = found["disappeared"]
    assert (gone["signal"], gone["how"]) == ("tank_7", "ended")


@pytest.mark.parametrize("name", ["jobs_done_total", "grains_sorted"])
@pytest.mark.parametrize("hours", [4, 11])
async def test_a_counter_that_stopped_is_reported_at_any_age(name: str, hours: int) -> None:
    found = await swept(
        series(name, lambda ago: 9.0 * (2000 - max(ago, 60 * hours))),
        series(name, lambda ago: 5.0 * (2000 - ago), product="cart"),
    )

    (gone,) = found["disappeared"]
    assert (gone["signal"], gone["how"]) == (name, "zero")


async def test_an_unnamed_request_counter_is_read_as_a_rate() -> None:
    half = lambda ago: 600.0 * (2000 - max(ago, 480)) + 240.0 * max(0, 480 - ago)  # noqa: E731
    found = await swept(series("hits_seen", half))

    (told,) = found["shifts"]
    assert (told["unit"], told["direction"]) == ("per second", "down")
    assert (told["usual"], told["last"]) == (pytest.approx(10), pytest.approx(4))


@pytest.mark.parametrize(
    ("name", "level", "told"),
    [
        ("db_pool_usage_ratio", 0.97, "pool"),
        ("process_cpu_usage", 0.95, "cpu"),
        ("busy_part", 0.96, "other"),
        ("db_pool_usage_ratio", 0.6, ""),
        ("memory_usage_ratio", 0.97, ""),
    ],
)
async def test_a_constantly_full_resource_is_reported(name: str, level: float, told: str) -> None:
    rows = [series(name, lambda ago: level + ago % 5 / 1000)]
    for product in ("cart", "db"):
        usual = series(name, lambda ago: 0.2 + ago % 7 / 100)
        rows.append({**usual, "labels": {"service": product}})
    found = await sweep(SweepMetrics, metrics=rows)

    assert "".join(one["role"] for one in found["standing"]) == told
    assert found["shifts"] == []
