"""When an answer that flows is read next: ten times a second, at one of a few moments shared by all.

Each read wakes the process, and a model that writes a hundred pieces a second would wake it as often.
Those that are read at one moment wake it once; all of them at one would keep it from everything else
for as long as they take together.
"""

import math
from typing import Final

# Nobody reads faster, and edits of a message are a second apart. Smaller steps cost: 0.04 a tenth of a turn.
READ_EVERY_S: Final = 0.1
# Moments within that time, of which an answer has the one that it begins nearest to.
MOMENTS: Final = 5
# An answer's head and its first word are read as they come, since somebody waits for them; what begins, its
# first words or a short call of a tool, twice as often as what goes on.
FIRST_EVENTS: Final = 4
FIRST_CHARS: Final = 40
BEGINNING_EVENTS: Final = 12
# No model says so much in one interval: what is read so is a backlog, and there may be more of it.
BACKLOG_BYTES: Final = 8 * 1024


class ReadPace:
    """One answer's. Times are seconds of one monotonic clock, the same for all answers."""

    __slots__ = ("_chars", "_events", "_is_fast", "_moment_s", "_read_at")

    def __init__(self, now: float) -> None:
        self._chars = self._events = 0
        self._read_at = now
        self._is_fast = False
        part_s = READ_EVERY_S / MOMENTS
        self._moment_s = math.floor(now % READ_EVERY_S / part_s) * part_s

    def read(self, now: float, size: int, events: int, chars: int) -> None:
        """So many bytes were read, with so many events and characters of text in them."""
        elapsed_s = now - self._read_at
        self._read_at = now
        self._chars += chars
        self._events += events
        # Where a wait gathers less than two events, it saves nothing.
        self._is_fast = size < BACKLOG_BYTES and 2 * elapsed_s <= events * READ_EVERY_S

    def wait_s(self, now: float) -> float:
        """Seconds until it is read next, less than `READ_EVERY_S` or that; 0: as soon as there is more."""
        if not self._is_fast or (self._events < FIRST_EVENTS and not self._chars):
            return 0.0
        is_beginning = self._chars < FIRST_CHARS and self._events < BEGINNING_EVENTS
        step_s = READ_EVERY_S / 2 if is_beginning else READ_EVERY_S
        past = math.floor((now - self._moment_s) / step_s)
        return (past + 1) * step_s + self._moment_s - now
