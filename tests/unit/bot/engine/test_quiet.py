"""What the workflow library still does by the clock while nothing is under way."""

import asyncio
import threading
import time
from queue import Empty, SimpleQueue

import pytest
import sqlalchemy as sa

from bot.engine import quiet
from bot.engine.quiet import OwnQueue
from tests.fixtures_engine import Lives, lives

__all__ = ["lives"]

POLLS = 20


async def test_it_looks_at_its_own_queue_and_at_nothing_else(lives: Lives) -> None:
    asked: dict[str, set[str]] = {}
    looks = threading.Semaphore(0)

    def note(_: object, __: object, statement: str, *___: object) -> None:
        asked.setdefault(threading.current_thread().name, set()).add(statement)
        for _ in range("queue_name = " in statement):
            looks.release()

    async with lives.life():
        sa.event.listen(sa.Engine, "before_cursor_execute", note)
        try:
            for _ in range(POLLS):
                assert await asyncio.to_thread(looks.acquire, timeout=20)
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", note)

    (queue_thread,) = [name for name in asked if "look_after" in name]
    told = " ".join(asked[queue_thread])
    assert (
        len(asked[queue_thread]) <= 4
    )  # the newest version, what is queued, PostgreSQL's settings
    assert {each.split()[0] for each in asked[queue_thread]} <= {"SELECT", "SET", "WITH"}
    assert "queues" not in told
    everywhere = " ".join(each for said in asked.values() for each in said)
    assert "workflow_schedules" not in everywhere
    assert "is_debounced" not in everywhere


@pytest.fixture
def own_queue(monkeypatch: pytest.MonkeyPatch) -> OwnQueue:
    """One whose hurry is over, as of a process that runs for a while."""
    made = OwnQueue()
    monkeypatch.setattr(made, "_hurried_at", time.monotonic() - quiet.HURRIED_S)
    return made


class Woken(SimpleQueue[None]):
    """Nothing comes, and the time passes at once."""

    waited_s: float | None = None

    def get(self, block: bool = True, timeout: float | None = None) -> None:
        self.waited_s = timeout
        raise Empty


def _waits(own_queue: OwnQueue, monkeypatch: pytest.MonkeyPatch, asked_s: float) -> float | None:
    woken = Woken()
    monkeypatch.setattr(own_queue, "_woken", woken)
    own_queue.wait(asked_s)
    return woken.waited_s


@pytest.mark.parametrize(("asked_s", "waited_s"), [(1.0, quiet.LATER_S), (120.0, 120.0)])
def test_a_poller_goes_slowly(
    own_queue: OwnQueue, monkeypatch: pytest.MonkeyPatch, asked_s: float, waited_s: float
) -> None:
    assert _waits(own_queue, monkeypatch, asked_s) == waited_s


def test_a_poller_looks_as_often_as_it_would_after_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _waits(OwnQueue(), monkeypatch, 1.0) == 1.0


def test_a_poller_looks_at_once_when_there_is_work_and_often_from_then_on(
    own_queue: OwnQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_queue.hurry()

    assert not own_queue.wait(3600.0)
    assert _waits(own_queue, monkeypatch, 1.0) == 1.0


async def test_a_poller_that_waits_looks_when_it_is_told_to(own_queue: OwnQueue) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as waiting:
        ended = waiting.create_task(asyncio.to_thread(own_queue.wait, 3600.0))
        own_queue.hurry()

    assert not ended.result()


async def test_a_poller_ends_when_it_is_told_to(own_queue: OwnQueue) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as waiting:
        ended = waiting.create_task(asyncio.to_thread(own_queue.wait, 3600.0))
        own_queue.set()

    assert ended.result()
    assert own_queue.is_set()
    assert own_queue.wait(3600.0)
