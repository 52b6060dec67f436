"""A thousand rounds of twenty presses at once on each database: how many effects, and how fast."""

import time
from collections import Counter

import pytest

from bot.store.database import Database
from tests.benchmarks.figures import quantile, show
from tests.click_race import PRESSES, holds, race
from tests.fixtures_database import database, database_url, other

__all__ = ["database", "database_url", "other"]

pytestmark = pytest.mark.benchmark

ROUNDS = 1_000


async def test_a_thousand_rounds_have_at_most_one_effect_each(
    database: Database, other: Database
) -> None:
    """Two replicas, Bolt's dispatch included; half of the rounds want two different people."""
    times, ends = [], Counter[str]()
    for number in range(ROUNDS):
        started = time.perf_counter()
        found = await race((database, other), number)
        times.append(time.perf_counter() - started)
        ends[f"{found.state}, {found.approvals} wanted, {found.effects} effects"] += 1
        assert holds(found), found
    show(
        f"{ROUNDS:,} rounds of {PRESSES} presses at once, {database.dialect}",
        most_effects_of_a_round="1",
        round_p50_p99_ms=f"{quantile(times, 0.5) * 1e3:.0f} {quantile(times, 0.99) * 1e3:.0f}",
        **{end: str(count) for end, count in sorted(ends.items())},
    )
