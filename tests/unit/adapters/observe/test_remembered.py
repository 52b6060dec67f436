"""An answer is asked for once, and lines of a sweep do not stay in memory."""

import asyncio
from datetime import timedelta

import pytest

from adapters.observe.remembered import Remembered
from tools.outside_json import counting_unread, left_out


class Asked:
    def __init__(self) -> None:
        self.times = 0

    async def __call__(self) -> int:
        self.times += 1
        return self.times


async def test_only_the_newest_answers_are_kept() -> None:
    kept: Remembered[int] = Remembered(timedelta(minutes=1), most=2)
    asked = Asked()
    for key in "abc":
        await kept.get(key, asked)

    assert [await kept.get(key, asked) for key in "cb"] == [3, 2]
    assert await kept.get("a", asked) == 4


async def test_an_expired_answer_is_freed_without_a_request() -> None:
    kept: Remembered[list[int]] = Remembered(timedelta(0))
    await kept.get("a", _list)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert kept.held == 0


async def test_a_failure_is_not_cached() -> None:
    kept: Remembered[int] = Remembered(timedelta(minutes=1))

    with pytest.raises(LookupError):
        await kept.get("a", _fails)
    assert await kept.get("a", Asked()) == 1


async def test_a_cached_answer_repeats_its_number_of_unreadable_entries() -> None:
    async def ask() -> int:
        left_out(2)
        return 1

    kept: Remembered[int] = Remembered(timedelta(minutes=1))
    counts = []
    for _ in range(2):
        with counting_unread() as unread:
            await kept.get("a", ask)
        counts.append(unread.count)
    assert counts == [2, 2]


async def _list() -> list[int]:
    return [1]


async def _fails() -> int:
    raise LookupError
