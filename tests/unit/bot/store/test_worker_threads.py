"""Threads that take work: in its order, the warm one first, all of it before they end."""

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from bot.store.thread_jobs import Threads

WAIT_S = 10.0


class Workers:
    """So many threads whose work ends when it is let go, one after the other as they began."""

    def __init__(self, count: int) -> None:
        self.began: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self.gates = [threading.Event() for _ in range(10)]
        self.threads: Threads[int] = Threads("worker", [self._worker(n) for n in range(count)])

    def _worker(self, number: int) -> Callable[[int], None]:
        def work(item: int) -> None:
            self.began.put((f"worker {number}", item))
            assert self.gates[item].wait(WAIT_S)

        return work

    def put(self, item: int) -> tuple[str, int]:
        """Who began it; it goes on until it is let go."""
        self.threads.put(item)
        return self.next()

    def next(self) -> tuple[str, int]:
        return self.began.get(timeout=WAIT_S)

    def end(self, item: int) -> None:
        """Let it go, and wait until its worker is free."""
        free = len(self.threads._free)
        self.gates[item].set()
        while len(self.threads._free) == free:
            threading.Event().wait(0.001)


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(3)
    yield made
    for gate in made.gates:
        gate.set()
    made.threads.close()


def test_a_thread_is_begun_only_when_all_others_are_busy(workers: Workers) -> None:
    assert workers.put(0) == ("worker 0", 0)
    workers.end(0)

    assert workers.put(1) == ("worker 0", 1)
    assert workers.put(2) == ("worker 1", 2)


def test_of_those_that_wait_the_one_that_worked_last_goes_on(workers: Workers) -> None:
    for item in range(3):
        workers.put(item)
    for item in (0, 2, 1):
        workers.end(item)

    assert [workers.put(item)[0] for item in (3, 4, 5)] == ["worker 1", "worker 2", "worker 0"]


def test_what_nobody_is_free_for_is_done_in_its_order(workers: Workers) -> None:
    for item in range(3):
        workers.put(item)
    for item in range(3, 6):
        workers.threads.put(item)
    for item in (1, 3, 4):
        workers.gates[item].set()

    assert [workers.next() for _ in range(3)] == [("worker 1", 3), ("worker 1", 4), ("worker 1", 5)]


def test_whoever_closes_them_waits_for_all_that_was_put(workers: Workers) -> None:
    for item in range(3):
        workers.put(item)
    for item in range(3, 6):
        workers.threads.put(item)
    closing = threading.Thread(target=workers.threads.close)
    closing.start()
    for gate in workers.gates:
        gate.set()
    closing.join(WAIT_S)

    assert not closing.is_alive()
    assert workers.began.qsize() == 3
    with pytest.raises(RuntimeError, match="closed"):
        workers.threads.put(6)


def test_threads_that_wait_end_when_they_are_closed(workers: Workers) -> None:
    workers.put(0)
    workers.put(1)
    workers.end(0)
    workers.end(1)

    workers.threads.close()

    assert not any(thread.is_alive() for thread in workers.threads._begun)
