"""The gate before a SQLite file: one writer at a time, readers pass, nobody keeps it by mistake."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.store.sqlite_threads import Gate, GatedConnection, urgent
from tests.arriving import Arriving

Open = Callable[[], GatedConnection]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Open]:
    opened: list[GatedConnection] = []

    def make() -> GatedConnection:
        made = sqlite3.connect(
            str(tmp_path / "gate.db"), timeout=0, factory=GatedConnection,
            isolation_level="IMMEDIATE", check_same_thread=False,
        )  # fmt: skip
        opened.append(made)
        return opened[-1]

    first = make()
    first.cursor().execute("CREATE TABLE t (n INTEGER UNIQUE)")
    first.commit()
    yield make
    for each in opened:
        each.close()


def started(connection: GatedConnection, n: int) -> threading.Thread:
    """Another thread that writes, which without the gate fails at once: its timeout is 0."""

    def write() -> None:
        connection.cursor().execute("INSERT INTO t VALUES (?)", (n,))
        connection.commit()

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_a_second_writer_waits_until_the_first_is_done(connect: Open, end: str) -> None:
    first, second = connect(), connect()
    first.cursor().execute("INSERT INTO t VALUES (1)")
    thread = started(second, 2)
    thread.join(0.05)
    assert thread.is_alive()
    getattr(first, end)()
    thread.join(2)

    assert connect().cursor().execute("SELECT n FROM t WHERE n = 2").fetchall() == [(2,)]


def test_a_reader_does_not_wait(connect: Open) -> None:
    first, second = connect(), connect()
    first.cursor().execute("INSERT INTO t VALUES (1)")

    assert second.cursor().execute("SELECT n FROM t").fetchall() == []


def test_a_statement_that_fails_before_its_transaction_lets_the_next_in(connect: Open) -> None:
    first, second = connect(), connect()
    with pytest.raises(sqlite3.OperationalError):
        first.cursor().execute("INSERT INTO nowhere VALUES (1)")
    first.rollback()
    thread = started(second, 2)
    thread.join(2)

    assert not thread.is_alive()


def test_the_gate_is_no_lock_of_its_own_against_other_files(connect: Open, tmp_path: Path) -> None:
    first = connect()
    first.cursor().execute("INSERT INTO t VALUES (1)")
    other = sqlite3.connect(str(tmp_path / "other.db"), factory=GatedConnection)
    other.cursor().execute("CREATE TABLE t (n)")
    other.cursor().execute("INSERT INTO t VALUES (1)")

    assert other.in_transaction
    other.close()


@pytest.fixture
def arriving() -> Arriving:
    return Arriving()


@pytest.fixture
def gate(arriving: Arriving) -> Gate:
    made = Gate()
    made._waiting = arriving
    return made


def test_who_waits_at_the_gate_enters_before_who_comes_back(gate: Gate, arriving: Arriving) -> None:
    order: list[str] = []

    def other() -> None:
        assert gate.acquire(10)
        order.append("other")
        gate.release()

    assert gate.acquire(10)
    waiter = threading.Thread(target=other)
    waiter.start()
    assert arriving.one.acquire(timeout=10)
    gate.release()
    assert gate.acquire(10)
    order.append("back")
    gate.release()
    waiter.join()
    assert order == ["other", "back"]


def test_whoever_is_waited_for_enters_before_all_others(gate: Gate, arriving: Arriving) -> None:
    order: list[str] = []

    def enter(name: str, is_urgent: bool) -> None:
        with urgent(is_so=is_urgent):
            assert gate.acquire(10)
        order.append(name)
        gate.release()

    assert gate.acquire(10)
    threads = []
    for name, is_urgent in (("step", False), ("first start", True), ("second start", True)):
        threads.append(threading.Thread(target=enter, args=(name, is_urgent)))
        threads[-1].start()
        assert arriving.one.acquire(timeout=10)
    gate.release()
    for thread in threads:
        thread.join(10)
    assert order == ["first start", "second start", "step"]


def test_who_gives_up_at_the_gate_is_passed_over() -> None:
    gate = Gate()
    assert gate.acquire(10)
    assert not gate.acquire(0.01)
    gate.release()
    assert gate.acquire(0)
