"""Rows have timestamps in milliseconds with any SQLite of this Python."""

import sqlite3
import time
from contextlib import closing

from bot.engine.dbos_setup import MillisecondClock


def test_a_row_is_stamped_by_its_table() -> None:
    before = time.time_ns() // 1_000_000
    with closing(sqlite3.connect(":memory:", factory=MillisecondClock)) as connection:
        connection.execute(
            "CREATE TABLE t (a, at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))"
        )
        connection.execute("INSERT INTO t (a) VALUES (1)")
        (stamped,) = connection.execute("SELECT round(at) FROM t").fetchone()
    assert before <= stamped <= time.time_ns() // 1_000_000


def test_other_uses_of_the_function_are_unchanged() -> None:
    with closing(sqlite3.connect(":memory:", factory=MillisecondClock)) as connection:
        ((seconds,),) = connection.execute("SELECT unixepoch('2026-01-01', '+1 day')")
    assert seconds == 1_767_312_000
