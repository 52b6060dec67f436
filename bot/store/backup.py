"""A copy of a SQLite database, made while it is used, that says of itself that it is a copy.

One snapshot in one file: the bot's tables and the engine's.
"""

import os
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from bot.ports.failures import StorageUnavailable
from bot.store.restore_guard import ORIGIN

_WAIT_S: Final = 30.0  # for a writer that is at work


class BackupRefused(Exception):
    """There is no copy, and what it says is why. Nothing else was changed."""


def write_backup(database: Path, target: Path) -> int:
    """Copy it, check the copy, and put it there, never over anything; returns its bytes.

    Blocks for as long as the disk takes. Mode 0600. Raises BackupRefused, StorageUnavailable.
    """
    if target.exists() or target.is_symlink():
        raise BackupRefused(f"{target} already exists and was not changed; name another file")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise BackupRefused(f"{target.parent}: cannot be written to ({error.strerror})") from error
    os.close(handle)
    part = Path(name)  # of mode 0600
    try:
        _copy(database, part)
        _seal(part)
        size = part.stat().st_size
        _place(part, target)
    except sqlite3.Error as error:
        raise StorageUnavailable(f"the copy could not be made: {error}") from error
    except OSError as error:
        raise BackupRefused(f"{target}: cannot be written ({error.strerror})") from error
    finally:
        part.unlink(missing_ok=True)
    return size


def _copy(database: Path, part: Path) -> None:
    # Not to be created if it is gone, and never to be written to.
    address = f"{database.absolute().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=_WAIT_S)) as source,
        closing(sqlite3.connect(part)) as copy,
    ):
        # In one step: between several, each change by another process would restart it.
        source.backup(copy)


def _seal(part: Path) -> None:
    with closing(sqlite3.connect(part)) as copy:
        copy.execute("PRAGMA journal_mode = DELETE")
        with copy:
            copy.execute(
                "INSERT INTO origin (name, copied_at) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET copied_at = excluded.copied_at",
                (ORIGIN, time.time_ns() // 1000),
            )
        (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise BackupRefused(f"the copy does not hold ({found}); look at the disk and the database")


def _place(part: Path, target: Path) -> None:
    with part.open("rb") as written:
        os.fsync(written.fileno())
    try:
        target.hardlink_to(part)  # unlike a rename, never over a file created in the meantime
    except FileExistsError:
        raise BackupRefused(f"{target} already exists and was not changed") from None
    except OSError:  # a file system without links
        with target.open("xb"):
            pass
        part.replace(target)
    with suppress(OSError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
