"""aiohttp's connections, doing once for an answer what aiohttp does for each of its pieces.

A model's answer comes in hundreds of pieces, and each would start a timer and ask the parser for what it
may have kept back, which is nothing unless the answer came faster than it was read.
"""

from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler


class Connector(aiohttp.TCPConnector):
    """aiohttp's, of such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        kind: type[ResponseHandler] = Connection
        self._factory = partial(kind, loop=self._loop)


class Connection(ResponseHandler):
    """One connection, whatever is asked on it."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self._was_held = False
        self._heard_at = 0.0

    def pause_reading(self) -> None:
        """Hold the answer: more of it came than its reader has room for."""
        self._was_held = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on, with what the parser kept back; told after each piece that is read."""
        if self._was_held:
            super().resume_reading(resume_parser)

    def _reschedule_timeout(self) -> None:
        """Count the silence anew: by the timer that runs already, if it does not end too late."""
        handle, limit_s = self._read_timeout_handle, self._read_timeout
        self._heard_at = self._loop.time()
        if handle is None or not limit_s or handle.when() > self._heard_at + limit_s:
            super()._reschedule_timeout()

    def _on_read_timeout(self) -> None:
        """The timer ended: the silence did not, if something came after it was started."""
        until = self._heard_at + (self._read_timeout or 0.0)
        if self._loop.time() < until:
            self._read_timeout_handle = self._loop.call_at(until, self._on_read_timeout)
        else:
            super()._on_read_timeout()
