"""A turn on a database with years behind it, against one on an empty one, on SQLite and PostgreSQL.

`KORTEX_BENCH_AUDIT_ROWS` sets another number of rows of the audit log; a million take about a minute.
"""

import os
from typing import Any

import pytest

from tests.benchmarks.child import result_of
from tests.benchmarks.figures import ratio_of, show, spread

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

AUDIT_ROWS = int(os.environ.get("KORTEX_BENCH_AUDIT_ROWS", "1000000"))
ROUNDS = 4


def _cpu(runs: list[Any]) -> list[float]:
    return [run["cpu_s"] for run in runs]


def test_turns_on_a_grown_database_against_an_empty_one() -> None:
    """10,000 sessions, the rows of the audit log, 60,000 rounds paid today; sinks served, and not."""
    found = result_of("growth_run", AUDIT_ROWS, ROUNDS)
    empty, grown, behind = (found[side] for side in ("empty", "grown", "behind"))
    show(
        f"turns over those on an empty database, {AUDIT_ROWS:,} rows of the audit log (target 1.1)",
        **_over_empty(grown, empty),
        log_behind_by_all_rows_cpu_ratio=ratio_of("cpu_s", behind, empty),
        log_behind_by_all_rows_turn_p50_ratio=ratio_of("turn_p50_s", behind, empty),
        log_behind_rows_told_a_second=spread([run["told_a_s"] for run in behind], 0),
        filled_in_s=f"{found['filled_s']:.0f}",
        size_mb=f"{found['bytes'] / 1e6:.0f}",
    )

    assert all(run["whole"] and run["errors"] == [] for run in [*empty, *grown, *behind])


def test_turns_on_a_grown_postgresql_against_an_empty_one() -> None:
    """The same but for a log that never had the rows."""
    found = result_of("growth_postgres", AUDIT_ROWS, ROUNDS)
    empty, grown = found["empty"], found["grown"]
    show(
        f"turns over those on an empty PostgreSQL, {AUDIT_ROWS:,} rows of the audit log (target 1.1)",
        **_over_empty(grown, empty),
    )

    assert all(run["whole"] and run["errors"] == [] for run in [*empty, *grown])


def _over_empty(grown: list[Any], empty: list[Any]) -> dict[str, str]:
    return {
        "grown_cpu_ratio": ratio_of("cpu_s", grown, empty),
        "grown_cpu_of_the_sums": f"{sum(_cpu(grown)) / sum(_cpu(empty)):.2f}",
        "empty_cpu_ms_per_turn": spread([each * 1e3 for each in _cpu(empty)], 1),
        "grown_cpu_ms_per_turn": spread([each * 1e3 for each in _cpu(grown)], 1),
        "grown_turn_p50_ratio": ratio_of("turn_p50_s", grown, empty),
        "grown_start_cpu_ratio": ratio_of("start_s", grown, empty),
    }
