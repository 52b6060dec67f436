"""The whole bot: fifty streams against plain httpx, then Slack's real limits with 100 and 500."""

from typing import Any

import pytest

from tests.benchmarks.child import result_of
from tests.benchmarks.figures import ratios, show, spread

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

PACE_MS = 10
SPEED = 10  # Slack's minute is six seconds, on both sides


def _ms(runs: list[Any], name: str) -> str:
    return spread([run[name] * 1e3 for run in runs], 1)


@pytest.mark.parametrize("streams", [15, 200])
def test_acknowledgements_during_live_answers(streams: int) -> None:
    """Over an aiohttp app in a process of its own that says yes to the same deliveries."""
    found = result_of("bot_run", PACE_MS, streams, 2 * streams, 1)["bot"]
    floors = [run["floor_ack_p99_s"] for run in found]
    show(
        f"acknowledgements, {streams} streams (target at most 3 times the floor, under 500 ms)",
        ack_p50_ms=_ms(found, "ack_p50_s"),
        ack_p99_ms=_ms(found, "ack_p99_s"),
        floor_ack_p99_ms=_ms(found, "floor_ack_p99_s"),
        ack_p99_over_floor=spread(ratios([run["ack_p99_s"] for run in found], floors)),
        loop_lag_p99_ms=_ms(found, "lag_p99_s"),
    )
    assert all(run["whole"] for run in found)


def test_the_whole_bot_at_fifty_streams() -> None:
    """Signed event in, durable turn, edits out; floors read the same streams, and say yes at once."""
    found = result_of("bot_run", PACE_MS, 50, 100, 3)
    ours, floor, idle = found["bot"], found["floor"], found["idle"]
    cpu = [[run["cpu_s"] for run in side] for side in (ours, floor)]
    acks = ratios(*[[run[name] for run in ours] for name in ("ack_p99_s", "floor_ack_p99_s")])
    show(
        "whole turn, 50 streams, an event every 10 ms (target 1.0)",
        bot_over_floor_cpu=spread(ratios(*cpu)),
        bot_cpu_ms_per_turn=_ms(ours, "cpu_s"),
        floor_cpu_ms_per_turn=_ms(floor, "cpu_s"),
        turn_p50_ms=_ms(ours, "turn_p50_s"),
        first_edit_p50_ms_target_10=_ms(ours, "first_edit_p50_s"),
        first_edit_p95_ms_target_25=_ms(ours, "first_edit_p95_s"),
        ack_p50_ms=_ms(ours, "ack_p50_s"),
        ack_p99_ms=_ms(ours, "ack_p99_s"),
        ack_p99_over_floor_target_3=spread(acks),
        idle_ack_p50_ms=_ms(idle, "ack_p50_s"),
        idle_ack_p99_ms=_ms(idle, "ack_p99_s"),
        loop_lag_p99_ms=_ms(ours, "lag_p99_s"),
        peak_rss_mb=spread([run["rss_mb"] for run in ours], 0),
    )

    assert all(run["whole"] for run in [*ours, *floor, *idle])
    assert all(run["errors"] == [] for run in [*ours, *idle])


@pytest.mark.parametrize(("threads", "pace_ms"), [(100, 10), (500, 50)])
def test_simultaneous_threads_within_slack_s_limits(threads: int, pace_ms: int) -> None:
    """All ask in the same moment, in 50 channels of one workspace."""
    found = result_of("bot_run", pace_ms, threads, threads, 0, SPEED)
    show(
        f"{threads} threads at once, Slack's real limits, time x{SPEED}",
        answered=str(found["answered"]),
        late_acknowledgements=str(found["late"]),
        never_acknowledged=str(found["unacknowledged"]),
        rate_limited=str(found["limited"]),
        slack_calls=str(found["slack_calls"]),
        last_final_s_of_slack_time=f"{found['wall_s'] * SPEED:.0f}",
        final_p50_s_of_slack_time=f"{found['turn_p50_s'] * SPEED:.0f}",
        ack_p50_ms=f"{found['ack_p50_s'] * 1e3:.1f}",
        ack_p99_ms=f"{found['ack_p99_s'] * 1e3:.1f}",
        cpu_s=f"{found['cpu_s'] * threads:.1f}",
        loop_lag_p99_ms=f"{found['lag_p99_s'] * 1e3:.1f}",
        peak_rss_mb=f"{found['rss_mb']:.0f}",
    )

    assert found["whole"]
    assert found["limited"] == 0
    assert found["errors"] == []
