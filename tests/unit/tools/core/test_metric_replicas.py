"""core__sweep_metrics names replicas that went quiet while the others of their product go on."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.packs import minutes
from tests.unit.tools.core.test_sweeps import sweep
from tools.core.sweep_metrics import SweepMetrics

DAY = 1440
Value = Callable[[int, int], float | None]  # of the minutes until now and the replica's number


def replicas(name: str, value: Value, number: int, label: str) -> list[Mapping[str, object]]:
    moments = minutes(DAY)
    return [
        {
            "name": name,
            "labels": {"service": "web", label: f"web-{one}"},
            "points": [
                (at, known)
                for n, at in enumerate(moments)
                if (known := value(DAY - n, one)) is not None
            ],
        }
        for one in range(number)
    ]


async def disappearances(
    name: str, value: Value, number: int = 4, label: str = "pod"
) -> Sequence[object]:
    found = await sweep(
        SweepMetrics, '{"product": "web"}', metrics=replicas(name, value, number, label)
    )
    return [(one["how"], one.get("only_at")) for one in found["disappeared"]]


def served(ago: int, since: int) -> float:
    """A counter of ten a minute that stopped so many minutes ago."""
    return 10.0 * (2 * DAY - max(ago, since))


@pytest.mark.parametrize("since", [25, 190, 700])
async def test_a_replica_without_requests_is_named_while_the_others_serve(since: int) -> None:
    idle = await disappearances(
        "http_requests_total", lambda ago, n: served(ago, since if n == 2 else 0)
    )

    assert ("zero", "pod=web-2 (1 of 4)") in idle


@pytest.mark.parametrize("since", [25, 190, 700])
async def test_a_replica_without_samples_is_named(since: int) -> None:
    silent = await disappearances(
        "http_requests_total", lambda ago, n: None if n == 1 and ago < since else served(ago, 0)
    )

    assert ("zero", "pod=web-1 (1 of 4)") in silent


@pytest.mark.parametrize("at", [30, 400])
async def test_a_rollout_of_all_replicas_is_not_reported(at: int) -> None:
    """Two of four are replaced by two others."""

    def rolled(ago: int, n: int) -> float | None:
        is_there = ago > at if n < 2 else ago <= at + 2 if n < 4 else True
        return served(ago, 0) if is_there else None

    assert await disappearances("http_requests_total", rolled, number=6) == []


@pytest.mark.parametrize("name", ["http_requests_total", "boxes", "Boxes.Out"])
async def test_a_part_of_the_traffic_that_never_paused_and_is_gone_is_reported(name: str) -> None:
    idle = await disappearances(
        name, lambda ago, n: served(ago, 300 if n == 2 else 0), label="path"
    )

    assert idle == [("zero", "path=web-2 (1 of 4)")]


@pytest.mark.parametrize(
    "rare",
    [
        lambda ago: served(ago, 300) / 50,
        lambda ago: served(max(ago // 60 * 60, 300), 0),
    ],
    ids=["little", "now and then"],
)
async def test_a_rare_part_of_the_traffic_may_go_quiet(rare: Callable[[int], float]) -> None:
    idle = await disappearances(
        "http_requests_total", lambda ago, n: rare(ago) if n == 2 else served(ago, 0), label="path"
    )

    assert idle == []


async def test_a_nightly_scale_down_is_not_reported() -> None:
    def scaled(ago: int, n: int) -> float | None:
        return served(ago, 0) if n < 2 or 200 < ago < 900 else None

    assert await disappearances("http_requests_total", scaled) == []


@pytest.mark.parametrize(
    ("down", "only_at"), [(1, "instance=web-0 (1 of 12)"), (3, "instance=web-0 (3 of 12)")]
)
async def test_a_target_with_several_instances_is_reported_with_the_number_down(
    down: int, only_at: str
) -> None:
    up = await disappearances("up", lambda ago, n: float(ago > 40 or n >= down), 12, "instance")

    assert up == [("down", only_at)]


async def test_a_target_that_is_down_completely_names_no_instance() -> None:
    up = await disappearances("up", lambda ago, n: float(ago > 40), 3, "instance")

    assert up == [("down", None)]
