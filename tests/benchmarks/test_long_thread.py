"""A question in a thread of 200 turns, against one in a thread of 30 and one in a new thread."""

import pytest

from tests.benchmarks.child import result_of
from tests.benchmarks.figures import ratio_of, show, spread

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

TURNS, ROUNDS = 200, 24


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_turns_in_a_long_thread_against_those_in_shorter_ones(database: str) -> None:
    """Asked one at a time, in turn. A new one has no history; what one carries along is bounded."""
    found = result_of("thread_run", database, TURNS, ROUNDS)
    show(
        f"turns in a thread of {TURNS} on {database}, over those in a thread of 30 to 50 (target 1.1)",
        many_over_few_cpu_ratio=ratio_of("cpu_s", found["many"], found["few"]),
        many_over_few_turn_p50_ratio=ratio_of("turn_p50_s", found["many"], found["few"]),
        many_over_new_cpu_ratio=ratio_of("cpu_s", found["many"], found["new"]),
        many_over_new_turn_p50_ratio=ratio_of("turn_p50_s", found["many"], found["new"]),
        many_cpu_ms_per_turn=spread([each["cpu_s"] * 1e3 for each in found["many"]], 1),
    )

    assert all(each["whole"] and each["errors"] == [] for side in found.values() for each in side)
