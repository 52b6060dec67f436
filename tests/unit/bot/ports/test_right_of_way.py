"""The loop that gives the right of way begins nothing while it is taken, and waits for nobody for long."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster

from bot.ports import right_of_way
from bot.ports.right_of_way import GivingLoop, RightOfWay

LONG_S = 30.0


@pytest.fixture
def giving(_nothing_blocks_the_loop: BlockBuster) -> Iterator[GivingLoop]:
    """A loop that gives it, running in a thread of its own: one that is meant to block."""
    _nothing_blocks_the_loop.deactivate()
    loop = GivingLoop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def test_it_is_taken_until_its_loop_comes_round(
    giving: GivingLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(right_of_way, "LONGEST_S", LONG_S)
    with giving.right_of_way.taken():
        begun = threading.Event()
        giving.call_soon_threadsafe(begun.set)
    assert not begun.wait(0.05)
    await asyncio.sleep(0)
    assert begun.wait(LONG_S)


async def test_it_is_taken_until_the_last_of_those_that_overlap_has_left(
    giving: GivingLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(right_of_way, "LONGEST_S", LONG_S)
    begun = threading.Event()
    with giving.right_of_way.taken():
        with giving.right_of_way.taken():
            giving.call_soon_threadsafe(begun.set)
        await asyncio.sleep(0)
        assert not begun.wait(0.05)
    await asyncio.sleep(0)
    assert begun.wait(LONG_S)


async def test_one_that_stays_is_not_waited_for_again(giving: GivingLoop) -> None:
    rounds = threading.Semaphore(0)
    with giving.right_of_way.taken():
        for _ in range(100):
            giving.call_soon_threadsafe(rounds.release)
            assert rounds.acquire(timeout=LONG_S)


def test_whoever_gives_it_goes_on_at_once_where_nobody_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(right_of_way, "LONGEST_S", LONG_S)
    RightOfWay().give()
