"""Names and times as Slack makes them: opaque ids, and message ids that look like times."""

import secrets
import string
import time
from collections.abc import Callable

_ALPHABET = string.ascii_uppercase + string.digits


def opaque(prefix: str, length: int = 10) -> str:
    """A fresh id such as `Ev0AB12CD34`."""
    return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(length))


class Timestamps:
    """Unique, increasing `1700000000.000100` strings over one workspace."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._last_us = 0

    def next(self) -> str:
        """The next one; never repeats even within one microsecond."""
        self._last_us = max(self._last_us + 1, int(self._now() * 1_000_000))
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06d}"
