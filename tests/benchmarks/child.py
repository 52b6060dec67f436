"""Processes beside the measured one, spoken to in lines of JSON over their pipes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parents[2]
_LINE_BYTES = 64 * 2**20
Answer = Callable[[dict[str, Any]], Awaitable[Any]]


def result_of(module: str, *arguments: object) -> Any:
    """Run a measuring process to its end; what it printed last is its result."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{module}", *map(str, arguments)],
        cwd=ROOT, check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    return orjson.loads(ran.stdout.splitlines()[-1])


class Child:
    """A running process; `ready` is what it said first."""

    def __init__(self, process: asyncio.subprocess.Process, ready: Any) -> None:
        self.ready = ready
        self._process = process

    async def call(self, do: str, **values: Any) -> Any:
        """One request, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(orjson.dumps({"do": do, **values}) + b"\n")
        await self._process.stdin.drain()
        return orjson.loads(await self._process.stdout.readline())


@asynccontextmanager
async def child(module: str, *arguments: object) -> AsyncIterator[Child]:
    """Start it, wait until it is ready, end it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"tests.benchmarks.{module}", *map(str, arguments),
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=_LINE_BYTES,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Child(process, orjson.loads(await process.stdout.readline()))
    finally:
        process.stdin.close()  # it ends with its input
        await process.wait()


async def serve(ready: Any, answer: Answer) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say(ready)
    while line := await reader.readline():
        say(await answer(orjson.loads(line)))


def say(value: Any) -> None:
    """One line of JSON to the parent."""
    sys.stdout.flush()  # output of other code comes before it
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()
