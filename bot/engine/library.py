"""What the workflow library needs of the process around it: a clock on SQLite, a broom, and an end.

It stamps rows with `unixepoch('subsec')` on Python 3.12 and newer, whatever SQLite that Python is
linked with; before SQLite 3.42 the function answers NULL. Records of work that has ended hold what was
asked, said and read, until they are deleted.
"""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from dbos import DBOS

from bot.store.write_gate import GatedConnection

SUBSEC_SINCE = (3, 42, 0)  # https://sqlite.org/releaselog/3_42_0.html

_ENDED: Final = ["SUCCESS", "ERROR", "CANCELLED"]
_AT_ONCE: Final = 1000  # the next sweep goes on


HAND_OVER_S = 5.0  # for cancelled work to close what it holds


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


async def end_dbos() -> None:
    """Destroy it, and give the loop threads of its own again.

    DBOS puts its own in the place of the loop's default and shuts them down; whatever is closed
    afterwards would end in "cannot schedule new futures after shutdown".
    """
    loop, threads = asyncio.get_running_loop(), ThreadPoolExecutor()
    loop.set_default_executor(threads)
    await loop.run_in_executor(threads, partial(DBOS.destroy, destroy_registry=True))
    loop.set_default_executor(threads)  # what was cancelled late may have asked DBOS once more


async def forget_ended(older_than_s: float) -> int:
    """Delete the records of work that was started before and has ended; returns how many.

    Work whose record is gone would run again if it were asked for again. Needs a running engine.
    """
    before = datetime.now(UTC) - timedelta(seconds=older_than_s)
    ended = await DBOS.list_workflows_async(
        status=_ENDED,
        end_time=before.isoformat(),
        limit=_AT_ONCE,
        load_input=False,
        load_output=False,
    )
    await DBOS.delete_workflows_async([w.workflow_id for w in ended])
    return len(ended)
