"""A server as a child process: its pipes as the SDK's streams, its environment, and its end.

The SDK's own transport passes unlisted variables on and reads lines of any length.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from adapters.errors import BadAnswer, Unreachable
from tools.output import clean_text
from tools.outside_json import in_whole_characters

MAX_MESSAGE_BYTES: Final = 1024 * 1024
MAX_MESSAGES_PER_S: Final = 500  # of a server that talks without being asked
EXIT_GRACE_S: Final = 2.0  # after closing its standard input, the signal to end
KILL_AFTER_S: Final = 1.0  # after SIGTERM
_LOOK_EVERY_S: Final = 0.01
_STDERR_LINES: Final = 5
_STDERR_LINE_BYTES: Final = 2000

_Sending: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
# What the SDK takes as a transport: what it reads, and what it writes to.
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerProcess:
    """A child that was started. `wake` is set when it cannot be talked to any more."""

    def __init__(
        self, process: Process, transport: asyncio.SubprocessTransport, wake: asyncio.Event
    ) -> None:
        self._process = process
        self._transport = transport
        self._said: deque[str] = deque(maxlen=_STDERR_LINES)
        self._wake = wake
        self._broken = ""
        self.is_over = False

    def why(self) -> str:
        """Why it cannot be talked to any more; what it wrote on standard error last is its word."""
        if self._broken:
            return self._broken
        code = self._process.returncode
        end = "it closed its output" if code is None else f"it ended with code {code}"
        return f"{end}: {self._said[-1]}" if self._said else end

    async def messages(self, out: _Sending) -> None:
        """Its lines, until it ends or says what no server may say."""
        loop = asyncio.get_running_loop()
        second, count = loop.time(), 0
        try:
            async with out:
                while (line := await self._line()) is not None:
                    if loop.time() - second >= 1.0:
                        second, count = loop.time(), 0
                    count += 1
                    if count > MAX_MESSAGES_PER_S:
                        self._broken = f"it sent more than {MAX_MESSAGES_PER_S} lines in 1 s"
                        return
                    if line.strip():
                        await out.send(_message(line))
        finally:
            self.is_over = True
            self._wake.set()

    async def _line(self) -> bytes | None:
        assert self._process.stdout is not None  # noqa: S101 - opened with pipes
        try:
            return await self._process.stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            self._broken = f"it sent a line of more than {MAX_MESSAGE_BYTES} bytes"
            return None
        except ConnectionError:
            return None

    async def complaints(self) -> None:
        """Read standard error and keep its last lines; the reader masks them."""
        assert self._process.stderr is not None  # noqa: S101 - opened with pipes
        rest = b""
        while part := await self._process.stderr.read(_STDERR_LINE_BYTES):
            *lines, rest = (rest + part).split(b"\n")
            rest = rest[:_STDERR_LINE_BYTES]
            texts = (clean_text(line.decode("utf-8", "replace")).strip() for line in lines)
            self._said.extend(text[:300] for text in texts if text)

    async def write(self, message: SessionMessage) -> None:
        """Raises ConnectionError when it no longer reads."""
        assert self._process.stdin is not None  # noqa: S101 - opened with pipes
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._process.stdin.write(text.encode() + b"\n")
        await self._process.stdin.drain()

    async def end(self) -> None:
        """Close its input, wait, then end its whole process group. Kills if cancelled."""
        assert self._process.stdin is not None  # noqa: S101 - opened with pipes
        self._process.stdin.close()
        try:
            if self._broken or not await self._ends_within(EXIT_GRACE_S):
                self._signal(signal.SIGTERM)
                await self._ends_within(KILL_AFTER_S)
        finally:
            self._signal(signal.SIGKILL)  # its own children too, which may outlive it
        await self._ends_within(KILL_AFTER_S)
        self._transport.close()  # a process that left the group may hold the pipes

    async def _ends_within(self, seconds: float) -> bool:
        """Looks for the exit code: `wait` also waits for all who hold the pipes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._process.returncode is None:  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(_LOOK_EVERY_S)
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _message(line: bytes, *, is_mended: bool = False) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        mended = None if is_mended else in_whole_characters(line)
    return (
        _message(mended, is_mended=True) if mended else BadAnswer("a line is no JSON-RPC message")
    )


async def start(
    command: Sequence[str], env: Mapping[str, str], wake: asyncio.Event
) -> ServerProcess:
    """Starts the program with exactly these variables. Raises Unreachable."""
    loop = asyncio.get_running_loop()
    try:
        # As `create_subprocess_exec`, which keeps the transport to itself.
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(MAX_MESSAGE_BYTES, loop),
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(env),
            start_new_session=True,  # a group of its own, to be ended as a whole
        )
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "not a command"
        raise Unreachable(f"{command[0]} cannot be started: {words}") from error
    return ServerProcess(Process(transport, protocol, loop), transport, wake)


@asynccontextmanager
async def streams(server: ServerProcess) -> AsyncIterator[Streams]:
    """The transport over a started process; the process ends with it."""
    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await server.messages(incoming)

    async def write() -> None:
        async with outgoing:
            with contextlib.suppress(ConnectionError):
                async for message in outgoing:
                    await server.write(message)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        group.start_soon(server.complaints)
        try:
            yield reading, writing
        finally:
            with anyio.CancelScope(shield=True):
                await server.end()
            group.cancel_scope.cancel()
            for stream in (incoming, reading, writing, outgoing):
                stream.close()
