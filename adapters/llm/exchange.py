"""One streamed exchange with a backend: send, decode as bytes arrive, close, exactly one end.

No retries here: the caller handles failures.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Final

import httpx

from adapters.errors import AdapterError, BadAnswer
from adapters.http.body import read_capped
from adapters.http.client import http_client
from adapters.http.errors import check_status, mapped_errors
from adapters.http.gathered import GatheredBody
from adapters.llm.decoding import Decoder
from adapters.llm.failures import VendorError, from_adapter_error, from_answer
from adapters.llm.framing import MAX_ANSWER_BYTES, round_limit_s
from adapters.llm.messages import DoneChunk, ErrorChunk, ErrorKind, StreamChunk, TextChunk
from adapters.llm.port import decoding
from adapters.llm.wire_json import parse

# A burst is decoded in parts of at most a quarter of a millisecond. After the same time again,
# other streams get their turn.
_PART_BYTES: Final = 16 * 1024
_LONGEST_HOLD_S: Final = 0.000_25
_SLICE_BYTES: Final = 512 * 1024
_MAX_ERROR_BYTES: Final = 64 * 1024
_MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
# Read a flowing answer ten times a second, and less often with many answers. Message edits are a
# second apart, and each read wakes the process. An answer flows from its first text, or after this
# many events without text.
READ_EVERY_S: Final = 0.1
READ_AT_LEAST_EVERY_S: Final = 0.5
_READS_A_SECOND: Final = 40
_FIRST_EVENTS: Final = 6
# How long to wait for the last bytes of a finished answer, so that the connection can be reused.
_DRAIN_S: Final = 0.05
# Added to the first silence: the time to connect to a backend.
_CONNECT_S: Final = 10.0
# These ended after the answer began, so at least the input is billed.
_BROKEN_OFF: Final = frozenset(
    {ErrorKind.CUT, ErrorKind.PROTOCOL, ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE}
)
_MAX_STREAMS: Final = 1000

_End = DoneChunk | ErrorChunk
_ENDS: Final = (DoneChunk, ErrorChunk)

ReadError = Callable[[int, httpx.Headers, bytes], VendorError]


async def only(chunk: StreamChunk) -> AsyncGenerator[StreamChunk, None]:
    yield chunk


class Exchange:
    """A backend's connection pool. Safe for concurrent use; `aclose` closes all of it.

    `timeout_s` is the longest wait for a sign of life: the head of an answer, then a whole event or
    comment. Bytes of an incomplete event do not count.
    """

    def __init__(
        self,
        provider: str,
        url: httpx.URL,
        headers: Mapping[str, str],
        timeout_s: float,
        allowed_hosts: frozenset[str] | None = None,
    ) -> None:
        own = frozenset({url.raw_host.decode("ascii")})
        self._provider = provider
        self._answers = 0  # that are read now
        self._timeout_s = timeout_s
        self.client = http_client(
            headers={"accept-encoding": "identity", "content-type": "application/json", **headers},
            read_s=timeout_s,
            streams=True,
            max_connections=_MAX_STREAMS,
            allowed_hosts=own if allowed_hosts is None else own & allowed_hosts,
        )

    async def aclose(self) -> None:
        await self.client.aclose()

    async def stream(
        self,
        url: httpx.URL,
        body: bytes,
        decoder: Decoder,
        read_error: ReadError,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[StreamChunk, None]:
        """POST and decode. The connection is returned or closed before the terminal chunk.

        `headers` belong to this request alone, such as its signature.
        """
        try:
            with mapped_errors(self._provider):
                request = self._request(url, body, headers or {})
                async with asyncio.timeout(self._timeout_s + _CONNECT_S):
                    response = await self.client.send(request, stream=True)
        except AdapterError as error:
            yield from_adapter_error(error)
            return
        try:
            if response.status_code >= 300:
                end: _End = await self._failed(response, read_error)
            else:
                told = _Answer(self._provider, self._timeout_s, response, decoder)
                with self._counted():
                    async with aclosing(told) as answer:
                        while answer.end is None:
                            for chunk in await answer.more(self._every_s):
                                yield chunk
                        end = await answer.settled(answer.end)
        finally:
            await response.aclose()
        yield end

    async def ask(self, method: str, url: httpx.URL, body: bytes = b"") -> object:
        """Send one request outside a conversation; returns the JSON answer. Raises AdapterError."""
        with mapped_errors(self._provider):
            async with (
                asyncio.timeout(self._timeout_s + _CONNECT_S),
                self.client.stream(method, url, content=body) as response,
            ):
                check_status(response)
                answer = await read_capped(response, _MAX_ANSWER_BYTES)
        try:
            return parse(answer)
        except ValueError as error:
            raise BadAnswer(f"{self._provider} answered with something that is not JSON") from error

    @property
    def _every_s(self) -> float:
        shared = self._answers / _READS_A_SECOND
        return min(max(READ_EVERY_S, shared), READ_AT_LEAST_EVERY_S)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._answers += 1
        try:
            yield
        finally:
            self._answers -= 1

    def _request(self, url: httpx.URL, body: bytes, headers: Mapping[str, str]) -> httpx.Request:
        """Build the request.

        A large body goes out in slices, so that copying it does not block the loop.
        """
        if len(body) <= _SLICE_BYTES:
            return self.client.build_request("POST", url, content=body, headers=headers)
        sized = {**headers, "content-length": str(len(body))}
        return self.client.build_request("POST", url, content=_slices(body), headers=sized)

    async def _failed(self, response: httpx.Response, read_error: ReadError) -> ErrorChunk:
        try:
            with mapped_errors(self._provider):
                async with asyncio.timeout(self._timeout_s):
                    body = await read_capped(response, _MAX_ERROR_BYTES)
        except AdapterError:
            body = b""  # the status alone says enough
        status = response.status_code
        return from_answer(
            self._provider, status, response.headers, read_error(status, response.headers, body)
        )


class _Answer:
    """One answer: read at even intervals, decoded in parts, watched for signs of life.

    `end` is its decoded terminal chunk.
    """

    __slots__ = (
        "_body",
        "_decoder",
        "_heard_at",
        "_is_delimited",
        "_now",
        "_parts",
        "_provider",
        "_rested_at",
        "_vitals",
        "end",
    )

    def __init__(
        self, provider: str, timeout_s: float, response: httpx.Response, decoder: Decoder
    ) -> None:
        self._provider = provider
        self._body = GatheredBody(response)
        self._decoder = decoder
        self._is_delimited = _is_delimited(response)
        self._now = asyncio.get_running_loop().time
        self._vitals = Vitals(self._now(), timeout_s)
        self._parts: Iterator[bytes] = iter(())
        # Start and end of the time in which this task holds the loop.
        self._rested_at = self._heard_at = self._now()
        self.end: _End | None = None

    async def more(self, every_s: float) -> Sequence[StreamChunk]:
        if self._heard_at - self._rested_at >= _LONGEST_HOLD_S:
            await asyncio.sleep(0)
            self._rested_at = self._now()
        part = next(self._parts, None)
        if part is None:
            try:
                part = await self._read()
            except AdapterError as error:
                self.end = from_adapter_error(error)
                return ()
        chunks = self._decoded(part)
        if self._decoder.heard > _FIRST_EVENTS or any(isinstance(c, TextChunk) for c in chunks):
            self._body.pause(every_s)
        if chunks and isinstance(chunks[-1], _ENDS):
            self.end = chunks[-1]
            return chunks[:-1]
        return chunks

    async def settled(self, end: _End) -> _End:
        if isinstance(end, ErrorChunk):
            usage = end.usage or self._decoder.billed  # no other source knows
            return replace(end, usage=usage, began=end.kind in _BROKEN_OFF)
        await _drain(self._body)
        return end

    async def aclose(self) -> None:
        await self._body.aclose()

    async def _read(self) -> bytes:
        """The first part of the next bytes; empty at the end."""
        with mapped_errors(self._provider):
            data = await self._body.more()
        if len(data) <= _PART_BYTES:
            self._rested_at = self._now()  # a small read means that there is no backlog
            return data
        self._parts = iter(_parts(data))
        return next(self._parts)

    def _decoded(self, part: bytes) -> Sequence[StreamChunk]:
        """The chunks of a part; an empty part ends the answer."""
        decoder = self._decoder
        with decoding():
            told = decoder.feed(part) if part else decoder.close(is_delimited=self._is_delimited)
        self._heard_at = self._now()
        wrong = self._vitals.wrong(self._heard_at, len(part), decoder.heard)
        if wrong is not None and not (told and isinstance(told[-1], _ENDS)):
            told.append(ErrorChunk(wrong[0], f"{self._provider} {wrong[1]}"))
        return told


class Vitals:
    """Liveness of an answer: its size, its start, and the time of its last whole event."""

    __slots__ = ("_alive_at", "_bytes", "_heard", "_limit_s", "_timeout_s", "_until")

    def __init__(self, now: float, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._limit_s = round_limit_s(timeout_s)
        self._until = now + self._limit_s
        self._alive_at = now
        self._heard = self._bytes = 0

    def wrong(self, now: float, size: int, heard: int) -> tuple[ErrorKind, str] | None:
        """Count more bytes, and return why the answer must be cut, if it must."""
        self._bytes += size
        if heard != self._heard:
            self._heard, self._alive_at = heard, now
        if self._bytes > MAX_ANSWER_BYTES:
            return ErrorKind.PROTOCOL, f"answered more than {MAX_ANSWER_BYTES} bytes"
        if now > self._until:
            return ErrorKind.TIMEOUT, f"did not come to an end in {self._limit_s:.0f} s"
        if now - self._alive_at > self._timeout_s:
            return ErrorKind.TIMEOUT, f"sent nothing whole for {self._timeout_s:.0f} s"
        return None


def _parts(data: bytes) -> Sequence[bytes]:
    return [data[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES)]


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _SLICE_BYTES):
        yield body[start : start + _SLICE_BYTES]


def _is_delimited(response: httpx.Response) -> bool:
    """Whether the transfer announces its end (RFC 9112 §6.3), so that a cut raises an error."""
    return "content-length" in response.headers or "transfer-encoding" in response.headers


async def _drain(body: GatheredBody) -> None:
    """Read a finished answer to its end, if that is near, so that the connection can be reused."""
    body.pause(0)
    try:
        async with asyncio.timeout(_DRAIN_S):
            with mapped_errors():
                while await body.more():
                    pass
    except (AdapterError, TimeoutError):
        return  # the answer is whole; only the connection is lost
