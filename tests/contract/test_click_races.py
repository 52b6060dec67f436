"""Rounds of twenty presses at once over two replicas: never more than one effect.

`make bench` plays a thousand rounds on each database.
"""

from bot.store.engine import Database
from tests.click_race import holds, race
from tests.fixtures_database import database, database_url, other

__all__ = ["database", "database_url", "other"]

ROUNDS = 6


async def test_twenty_presses_at_once_have_one_effect_at_most(
    database: Database, other: Database
) -> None:
    rounds = [await race((database, other), number) for number in range(ROUNDS)]

    assert [found for found in rounds if not holds(found)] == []
    assert sum(found.effects for found in rounds) > 0
