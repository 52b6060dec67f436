"""SQLite's clock of milliseconds, for builds of SQLite that only count seconds.

The workflow library stamps rows with `unixepoch('subsec')` on Python 3.12 and newer, whatever
SQLite that Python is linked with; before SQLite 3.42 the function answers NULL.
"""

import sqlite3
import time
from typing import Any

from bot.store.write_gate import GatedConnection

SUBSEC_SINCE = (3, 42, 0)  # https://sqlite.org/releaselog/3_42_0.html


class MillisecondClock(GatedConnection):
    """A `factory` for the driver: `unixepoch('subsec')` is known, and writers take turns with ours."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if sqlite3.sqlite_version_info < SUBSEC_SINCE:
            self.create_function("unixepoch", 1, _unixepoch)


def milliseconds() -> dict[str, object]:
    """What SQLAlchemy's `create_engine` takes, to connect so. New each time: it is written to."""
    return {"connect_args": {"factory": MillisecondClock}}


def _unixepoch(modifier: str) -> float | None:
    return time.time_ns() // 1_000_000 / 1000 if modifier == "subsec" else None
