"""SQLite's log is taken into its file by a thread of its own, so that no writer does it with its commit.

SQLite leaves that to whoever commits the thousandth page (https://www.sqlite.org/wal.html#ckpt). That
one waits for the file's sync as well, and so does everybody behind it at the gate.
"""

from contextlib import suppress
from typing import Final

import sqlalchemy as sa

from bot.store.in_thread import Kept
from bot.store.thread_jobs import Threads

# Transactions of the writer from one to the next. Those of live answers write 17 pages each, and the
# log is begun anew where nobody writes meanwhile: it stayed below 3,500 pages.
EACH: Final = 60
# Pages. A writer that finds so many takes them in after all: a few large transactions, or a thread
# that cannot keep up.
LOG_PAGES: Final = 8_000


class Checkpoints:
    """Of one file, for its one thread that writes."""

    def __init__(self, engine: sa.Engine) -> None:
        self._kept = Kept(engine)
        self._written = 0
        self._thread = Threads("sqlite-checkpoint", [self._take_in])

    def wrote(self) -> None:
        """A transaction was committed."""
        self._written += 1
        if self._written >= EACH:
            self._thread.put(self._written)
            self._written = 0

    def close(self) -> None:
        """Wait for the one under way and give the connection back."""
        self._thread.close()
        self._kept.close()

    def _take_in(self, _written: int) -> None:
        # PASSIVE waits for nobody, and nobody for it. What fails is left to the next.
        with suppress(sa.exc.DBAPIError), self._kept.reading() as connection:
            connection.sync_connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").close()
