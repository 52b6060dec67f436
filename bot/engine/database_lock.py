"""One process per SQLite file: two would each run the other's work."""

import fcntl
from pathlib import Path
from typing import IO


class SecondProcess(Exception):
    """Another process already owns this SQLite database."""


def take_lock(database: Path) -> IO[bytes]:
    """Hold the database for as long as the handle is open. Raises SecondProcess."""
    handle = database.with_name(database.name + ".lock").open("ab")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise SecondProcess(
            f"{database} is in use by another kortex process. Stop that one, "
            "or use PostgreSQL to run several."
        ) from None
    return handle
