"""When an answer that flows is read next: at most 25 times a second, all answers at the same moments.

Each read wakes the process, and a model that writes a hundred pieces a second would wake it as often.
"""

import math
from typing import Final

# Nobody reads faster, and edits of a message are a second apart.
READ_EVERY_S: Final = 0.04
# Until so much of an answer is there it is read as it comes: people see nothing of it yet.
FIRST_CHARS: Final = 200
# No model says so much in one interval: what is read so is a backlog, and there may be more of it.
BACKLOG_BYTES: Final = 8 * 1024


class ReadPace:
    """One answer's. Times are seconds of one monotonic clock, the same for all answers."""

    __slots__ = ("_chars", "_is_fast", "_read_at")

    def __init__(self, now: float) -> None:
        self._chars = 0
        self._read_at = now
        self._is_fast = False

    def read(self, now: float, size: int, events: int, chars: int) -> None:
        """So many bytes were read, with so many events and characters of text in them."""
        elapsed_s = now - self._read_at
        self._read_at = now
        self._chars += chars
        # Where a wait gathers less than two events, it saves nothing.
        self._is_fast = size < BACKLOG_BYTES and 2 * elapsed_s <= events * READ_EVERY_S

    def wait_s(self, now: float) -> float:
        """Seconds until it is read next, less than `READ_EVERY_S` or that; 0: as soon as there is more."""
        if not self._is_fast or self._chars < FIRST_CHARS:
            return 0.0
        return (math.floor(now / READ_EVERY_S) + 1) * READ_EVERY_S - now
