"""Cached look-ups: one at a time per key, no failure kept, nothing older than a change."""

import asyncio

import pytest

from bot.slack.api.single_flight import SingleFlightCache


class Directory:
    """Answers with how often it was asked, after `gate` opens."""

    def __init__(self, *failures: Exception) -> None:
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self._failures = [*failures]

    async def look_up(self, key: str) -> int:
        self.asked.append(key)
        number = len(self.asked)
        await self.gate.wait()
        if self._failures:
            raise self._failures.pop()
        return number


async def test_simultaneous_callers_share_one_lookup() -> None:
    directory = Directory()
    fresh = SingleFlightCache(directory.look_up, lambda: 0.0)

    async with asyncio.TaskGroup() as group:
        both = [group.create_task(fresh.get("a", 60.0)) for _ in range(2)]
        await asyncio.sleep(0)
        directory.gate.set()

    assert [each.result() for each in both] == [1, 1]


async def test_a_failure_is_raised_and_not_cached() -> None:
    directory = Directory(OSError("away"))
    directory.gate.set()
    fresh = SingleFlightCache(directory.look_up, lambda: 0.0)

    with pytest.raises(OSError, match="away"):
        await fresh.get("a", 60.0)

    assert await fresh.get("a", 60.0) == 2


async def test_a_caller_that_waits_during_an_invalidation_gets_a_newer_answer() -> None:
    directory = Directory()
    fresh = SingleFlightCache(directory.look_up, lambda: 0.0)

    async with asyncio.TaskGroup() as group:
        first = group.create_task(fresh.get("a", 60.0))
        waiting = group.create_task(fresh.get("a", 60.0))
        await asyncio.sleep(0)
        fresh.forget("a")
        directory.gate.set()

    assert (first.result(), waiting.result()) == (1, 2)
    assert await fresh.get("a", 60.0) == 2


async def test_an_answer_is_cached_as_long_as_the_caller_allows() -> None:
    now = [0.0]
    directory = Directory()
    directory.gate.set()
    fresh = SingleFlightCache(directory.look_up, lambda: now[0])

    await fresh.get("a", 60.0)
    now[0] = 61.0

    assert (await fresh.get("a", 120.0), await fresh.get("a", 60.0)) == (1, 2)


async def test_the_least_recently_used_entry_is_evicted() -> None:
    directory = Directory()
    directory.gate.set()
    fresh = SingleFlightCache(directory.look_up, lambda: 0.0, capacity=2)

    for key in "abca":
        await fresh.get(key, 60.0)

    assert directory.asked == ["a", "b", "c", "a"]
