"""One streamed exchange with a backend: send, decode as bytes arrive, close, exactly one end.

No retries here: what to do about a failure belongs to the caller.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final, cast

import httpx

from adapters.errors import AdapterError, BadAnswer
from adapters.http import check_status, http_client, mapped_errors, paused, read_capped
from adapters.llm.decoding import Decoder
from adapters.llm.failures import VendorError, from_adapter_error, from_answer
from adapters.llm.framing import MAX_ANSWER_BYTES, round_limit_s
from adapters.llm.messages import DoneChunk, ErrorChunk, ErrorKind, StreamChunk, TextChunk
from adapters.llm.pace import ReadPace
from adapters.llm.port import decoding
from adapters.llm.wire_json import parse

# A burst is decoded in parts, and after so many events of it other streams get their turn.
_PART_BYTES: Final = 4 * 1024
_EVENTS_PER_TURN: Final = 48
_SLICE_BYTES: Final = 512 * 1024
_MAX_ERROR_BYTES: Final = 64 * 1024
_MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
# How long to wait for the last bytes of a finished answer, so that the connection can be reused.
_DRAIN_S: Final = 0.05
# Beyond the first silence: what it takes to reach a backend.
_CONNECT_S: Final = 10.0
# What has no end of its own was begun, and is billed at least for what it was sent.
_BROKEN_OFF: Final = frozenset(
    {ErrorKind.CUT, ErrorKind.PROTOCOL, ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE}
)
_MAX_STREAMS: Final = 1000

ReadError = Callable[[int, httpx.Headers, bytes], VendorError]


async def only(chunk: StreamChunk) -> AsyncGenerator[StreamChunk, None]:
    """A stream of one chunk."""
    yield chunk


class Exchange:
    """A backend's connection pool. Safe for concurrent use; `aclose` closes all of it.

    `timeout_s` is the longest wait for a sign of life: the head of an answer, then a whole event or
    comment; bytes of one that is never whole are none.
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
        self._timeout_s = timeout_s
        self.client = http_client(
            headers={"accept-encoding": "identity", "content-type": "application/json", **headers},
            read_s=timeout_s,
            max_connections=_MAX_STREAMS,
            allowed_hosts=own if allowed_hosts is None else own & allowed_hosts,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self.client.aclose()

    async def stream(
        self,
        url: httpx.URL,
        body: bytes,
        decoder: Decoder,
        read_error: ReadError,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[StreamChunk, None]:
        """POST and decode. The connection is back or closed before the terminal chunk is given.

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
                end: StreamChunk = await self._failed(response, read_error)
            else:
                async with aclosing(self._decoded(response, decoder)) as chunks:
                    async for chunk in chunks:
                        if isinstance(chunk, DoneChunk | ErrorChunk):
                            end = _with_usage(chunk, decoder)
                            break
                        yield chunk
        finally:
            await response.aclose()
        yield end

    async def ask(self, method: str, url: httpx.URL, body: bytes = b"") -> object:
        """One question outside of a conversation; the JSON answered. Raises AdapterError."""
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

    def _request(self, url: httpx.URL, body: bytes, headers: Mapping[str, str]) -> httpx.Request:
        """A large body goes out in slices, so that copying it does not hold up the loop."""
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

    async def _decoded(
        self, response: httpx.Response, decoder: Decoder
    ) -> AsyncGenerator[StreamChunk, None]:
        now = asyncio.get_running_loop().time
        vitals, pace = Vitals(now(), self._timeout_s), ReadPace(now())
        rested = 0
        delimited = _is_delimited(response)
        async with aclosing(_body(response)) as body:
            while True:
                if (wait_s := pace.wait_s(now())) > 0:
                    with paused(response):
                        await asyncio.sleep(wait_s)
                try:
                    with mapped_errors(self._provider):
                        data = await anext(body, b"")
                except AdapterError as error:
                    yield from_adapter_error(error)
                    return
                heard, said = decoder.heard, 0
                for part in _parts(data):
                    chunks = self._told(part, decoder, vitals, now(), is_delimited=delimited)
                    said += _text_chars(chunks)
                    for chunk in chunks:
                        if isinstance(chunk, DoneChunk) and data:
                            await _drain(body)
                        yield chunk
                    if decoder.heard - rested >= _EVENTS_PER_TURN:
                        rested = decoder.heard
                        await asyncio.sleep(0)
                if not data:
                    return
                pace.read(now(), len(data), decoder.heard - heard, said)

    def _told(
        self, part: bytes, decoder: Decoder, vitals: "Vitals", now: float, *, is_delimited: bool
    ) -> Sequence[StreamChunk]:
        """What these bytes complete; none are the end of the answer."""
        with decoding():
            told = decoder.feed(part) if part else decoder.close(is_delimited=is_delimited)
        wrong = vitals.wrong(now, len(part), decoder.heard)
        if wrong is not None and not _has_ended(told):
            told = [*told, ErrorChunk(wrong[0], f"{self._provider} {wrong[1]}")]
        return told


class Vitals:
    """Whether an answer still comes: how much, since when, and when something whole came last."""

    __slots__ = ("_alive_at", "_bytes", "_heard", "_limit_s", "_timeout_s", "_until")

    def __init__(self, now: float, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._limit_s = round_limit_s(timeout_s)
        self._until = now + self._limit_s
        self._alive_at = now
        self._heard = self._bytes = 0

    def wrong(self, now: float, size: int, heard: int) -> tuple[ErrorKind, str] | None:
        """After so many more bytes: what the answer is cut for, if it is."""
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
    if len(data) <= _PART_BYTES:
        return (data,)
    return [data[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES)]


def _text_chars(chunks: Sequence[StreamChunk]) -> int:
    return sum(len(chunk.text) for chunk in chunks if isinstance(chunk, TextChunk))


def _has_ended(chunks: Sequence[StreamChunk]) -> bool:
    return bool(chunks) and isinstance(chunks[-1], DoneChunk | ErrorChunk)


def _with_usage(end: DoneChunk | ErrorChunk, decoder: Decoder) -> DoneChunk | ErrorChunk:
    """A failed end with what was billed by then: nobody else knows."""
    if isinstance(end, DoneChunk):
        return end
    return replace(end, usage=end.usage or decoder.billed, began=end.kind in _BROKEN_OFF)


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _SLICE_BYTES):
        yield body[start : start + _SLICE_BYTES]


def _body(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body as it arrives; the decompressing reader only where a server compressed anyway."""
    encoded = "content-encoding" in response.headers
    body = response.aiter_bytes() if encoded else response.aiter_raw()
    return cast("AsyncGenerator[bytes, None]", body)


def _is_delimited(response: httpx.Response) -> bool:
    """Whether the transfer tells its end (RFC 9112 §6.3), so that a cut one raises an error."""
    return "content-length" in response.headers or "transfer-encoding" in response.headers


async def _drain(body: AsyncIterator[bytes]) -> None:
    """Read a finished answer to its end, if that end is near."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            with mapped_errors():
                async for _ in body:
                    pass
    except (AdapterError, TimeoutError):
        return  # the answer is whole; only the connection is lost
