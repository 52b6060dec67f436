"""Slack's library says at each try, every ten seconds, that its socket is away; we say it once, and when it is back.

What it says for the first time is kept in our line; the repetitions are counted.
"""

import logging
import re
import time
from collections.abc import Callable
from typing import Final

import structlog

_log = structlog.stdlib.get_logger(__name__)
_AGAIN_S: Final = 300.0  # a long outage is told again, for whoever looks later
# slack_sdk.socket_mode.aiohttp, of a connection that broke off and of one that is not made again.
_AWAY: Final = (
    "Failed to receive or enqueue a message",
    "Failed to check the current session",
    "Failed to connect (error",
    "Failed to retrieve WSS URL",
    "Failed to send a ping message",
)
_SESSION: Final = re.compile(r" ?\(s_\d+\)")  # of every try another one


class Outage(logging.Filter):
    """Of one connection. A filter of the libraries' logger, for as long as that is kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since: float | None = None
        self._told_at = 0.0
        self._told: set[str] = set()
        self._tries = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the library's own line is written: not of what is told here."""
        words = record.getMessage()
        if not words.startswith(_AWAY):
            return True
        now = self._clock()
        self._tries += 1
        why = _SESSION.sub("", words)
        if self._since is None:
            self._since = now
        if why not in self._told or now - self._told_at >= _AGAIN_S:
            self._told.add(why)
            self._told_at = now
            _log.warning(
                "slack.socket.away", why=why, away_s=round(now - self._since), tries=self._tries
            )
        return False

    def over(self) -> None:
        """Slack greeted a connection."""
        if self._since is None:
            return
        away_s = round(self._clock() - self._since)
        _log.info("slack.socket.back", away_s=away_s, tries=self._tries)
        self._since, self._tries = None, 0
        self._told.clear()
