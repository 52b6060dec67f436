"""What the workflow library still does by the clock while nothing is under way."""

import asyncio
import threading

import pytest
import sqlalchemy as sa

from bot.engine import quiet
from bot.engine.quiet import Unhurried
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

    (queue_thread,) = [name for name in asked if "_own_queue" in name]
    told = " ".join(asked[queue_thread])
    assert (
        len(asked[queue_thread]) <= 4
    )  # the newest version, what is queued, PostgreSQL's settings
    assert {each.split()[0] for each in asked[queue_thread]} <= {"SELECT", "SET", "WITH"}
    assert "queues" not in told
    everywhere = " ".join(each for said in asked.values() for each in said)
    assert "workflow_schedules" not in everywhere
    assert "is_debounced" not in everywhere


def test_a_poller_goes_slowly_once_the_start_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    waited: list[float | None] = []
    monkeypatch.setattr(stop, "wait", waited.append)
    unhurried = Unhurried(stop)

    unhurried.wait(1.0)
    monkeypatch.setattr(quiet, "STARTING_S", 0.0)
    unhurried.wait(1.0)
    unhurried.wait(30.0)

    assert waited == [1.0, quiet.LATER_S, 30.0]


def test_a_poller_ends_when_it_is_told_to() -> None:
    stop = threading.Event()
    unhurried = Unhurried(stop)
    assert not unhurried.is_set()

    stop.set()

    assert unhurried.is_set()
    assert unhurried.wait(60.0)
