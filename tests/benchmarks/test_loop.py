"""CPU of the tool loop against plain httpx; and five hundred streams in one process."""

import pytest

from tests.benchmarks.child import result_of
from tests.benchmarks.figures import ratios, show, spread
from tests.benchmarks.transcript import WIRES, event_count

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("wire", WIRES)
def test_the_loop_against_plain_httpx(wire: str) -> None:
    """One stream as fast as it comes: validation, redaction and audit rows are ours alone."""
    found = result_of("loop_run", wire, 0, 1, 60, 5)
    ours, floor = ([run["cpu_s"] * 1e3 for run in found[side]] for side in ("ours", "floor"))
    show(
        f"loop, {wire}, burst, {event_count(wire)} events (target 0.6)",
        ours_over_floor=spread(ratios(ours, floor)),
        ours_cpu_ms_per_turn=spread(ours, 1),
        floor_cpu_ms_per_turn=spread(floor, 1),
    )

    assert all(run["whole"] for run in found["ours"] + found["floor"])


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_the_loop_at_fifty_streams(wire: str) -> None:
    """Fifty at once, an event every 10 ms each."""
    found = result_of("loop_run", wire, 10, 50, 50, 3)
    ours, floor = ([run["cpu_s"] * 1e3 for run in found[side]] for side in ("ours", "floor"))
    show(
        f"loop, {wire}, 50 streams, an event every 10 ms (target 0.6)",
        ours_over_floor=spread(ratios(ours, floor)),
        ours_cpu_ms_per_turn=spread(ours, 1),
        floor_cpu_ms_per_turn=spread(floor, 1),
        ours_lag_p99_ms=spread([run["lag_p99_s"] * 1e3 for run in found["ours"]], 1),
        floor_lag_p99_ms=spread([run["lag_p99_s"] * 1e3 for run in found["floor"]], 1),
    )

    assert all(run["whole"] for run in found["ours"] + found["floor"])


def test_five_hundred_streams_in_one_process() -> None:
    """Twenty events a second each, the tool loop alone; the whole bot is measured elsewhere."""
    pace_ms = 50
    found = result_of("loop_run", "openai", pace_ms, 500)
    ideal_s = event_count("openai") * pace_ms / 1000
    show(
        "500 streams at 20 events/s in one process (targets 1.1, 100 ms, 250 MB)",
        wall_over_ideal=f"{found['wall_s'] / ideal_s:.3f}",
        loop_lag_p99_ms=f"{found['lag_p99_s'] * 1e3:.1f}",
        peak_rss_mb=f"{found['rss_mb']:.0f}",
        cpu_ms_per_turn=f"{found['cpu_s'] * 1e3:.1f}",
    )

    assert found["whole"]
