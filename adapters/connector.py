"""aiohttp's connections, doing once for an answer what aiohttp does for each of its pieces.

A model's answer comes in hundreds of pieces, and each would start a timer and ask the parser for what it
may have kept back, which is nothing unless the answer came faster than it was read.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection as Connected
from aiohttp.http_exceptions import HttpProcessingError

from adapters.gathered import Gathered

_END_OF_HEAD: Final = b"\r\n\r\n"
_INTERIM: Final = frozenset(range(100, 200)) - {101}
_MOST_INTERIM: Final = 32  # one is usual, and a server that sends them on and on never answers


class Connector(aiohttp.TCPConnector):
    """aiohttp's, of such connections.

    Where `ssl` names nobody, `usual` tells whom to trust: asked in a thread, as it reads files, and only
    before a connection that is encrypted.
    """

    def __init__(self, usual: Callable[[], ssl.SSLContext], **options: Any) -> None:
        super().__init__(**options)
        self._usual = usual
        kind: type[ResponseHandler] = Connection
        self._factory = partial(kind, loop=self._loop)

    async def connect(self, req: aiohttp.ClientRequest, *args: Any, **options: Any) -> Connected:
        """A connection for that request: aiohttp's own way of asking."""
        if self._ssl is True and (req.is_ssl() or req.proxy):
            self._ssl = await asyncio.to_thread(self._usual)
        return await super().connect(req, *args, **options)


class Connection(ResponseHandler):
    """One connection, whatever is asked on it."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self._was_held = False
        self._heard_at = 0.0
        self._before: tuple[object, int] | None = None
        self._interim = 0
        self._is_sent = False
        self._has_head = False

    def set_response_params(self, **params: Any) -> None:
        """One more request is about to be sent."""
        self._is_sent = False
        self._has_head = False
        super().set_response_params(**params)

    def start_timeout(self) -> None:
        """The request is written, and its answer waited for."""
        self._is_sent = True
        super().start_timeout()

    def data_received(self, data: bytes) -> None:
        """What comes with a head is parsed after it, by when its reader is one that gathers."""
        if self._has_head:
            super().data_received(data)
            return
        end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        rest = data[end:] if end >= len(_END_OF_HEAD) else b""
        super().data_received(data[:end] if rest else data)
        if type(self._payload) is aiohttp.StreamReader:
            self._payload.__class__ = Gathered
            self._has_head = True
        if rest and self._exception is None:
            super().data_received(rest)

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
            self._before = self._body_so_far()
            super()._reschedule_timeout()

    def _on_read_timeout(self) -> None:
        """The timer ended: the silence did not, if some of the answer came after it was started.

        What only looks like an answer (a head without an end, interim answers, extensions of a chunk)
        is silence.
        """
        until = self._heard_at + (self._read_timeout or 0.0)
        so_far = self._body_so_far()
        if self._loop.time() < until and so_far != self._before:
            self._before = so_far
            self._read_timeout_handle = self._loop.call_at(until, self._on_read_timeout)
        else:
            super()._on_read_timeout()

    def _body_so_far(self) -> tuple[object, int]:
        body = None if self._interim else self._payload
        return body, body.total_bytes if body is not None else 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        """A head came whole, with its body to come. Interim ones are passed over."""
        if data[0].code not in _INTERIM:
            self._interim = 0
            super().feed_data(data, size)
            return
        self._interim += 1
        if self._interim > _MOST_INTERIM and self._exception is None:
            self.set_exception(HttpProcessingError(message="interim answers without an end"))

    def _drop_timeout(self) -> None:
        """Nothing is waited for: not so after an interim answer, whose body is empty."""
        if not (self._interim and self._exception is None and self.is_connected()):
            super()._drop_timeout()

    def pause_writing(self) -> None:
        """Hold the request: its server takes no more, for as long as it may be silent."""
        super().pause_writing()
        self._reschedule_timeout()

    def resume_writing(self) -> None:
        """Go on: while a request is still to be written, an answer is not waited for."""
        super().resume_writing()
        if self._is_sent or (self._payload is not None and not self._payload.is_eof()):
            self._reschedule_timeout()
        else:
            self._drop_timeout()
