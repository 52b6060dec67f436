"""A journal that replays, and a process that can die at any moment.

`Fuse` counts every call and every record; at the chosen tick the process is gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import orjson
from pydantic import JsonValue

T = TypeVar("T")


class Crash(BaseException):
    """kill -9: nothing after this line of the process happens."""


class Fuse:
    """Burns at the tick `at`, once; None never burns."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.ticks = 0

    def tick(self) -> None:
        """One more moment in which the process may die."""
        now, self.ticks = self.ticks, self.ticks + 1
        if now == self.at:
            raise Crash(f"tick {now}")


class Fragile:
    """Any port, with a tick and a change of tasks before and after each of its calls."""

    def __init__(self, inner: object, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        method = getattr(self._inner, name)

        async def call(*args: object, **kwargs: object) -> object:
            self._fuse.tick()
            await asyncio.sleep(0)  # others may come first, as on a real wire
            value = await method(*args, **kwargs)
            await asyncio.sleep(0)
            self._fuse.tick()
            return value

        return call


class MemoryJournal:
    """One workflow's record. `resumed` is what the next process gets after a crash."""

    def __init__(
        self,
        fuse: Fuse | None = None,
        record: list[tuple[str, bytes]] | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        """`at_once`: every step is recorded as it ends, whenever it is due."""
        self._fuse = fuse or Fuse()
        self._at = 0
        self.progress = 0
        self._waiting: list[tuple[str, bytes]] = []
        self._waits = (
            record is None and not at_once
        )  # after a death each step has a record of its own
        self.record = record if record is not None else []

    def resumed(self, fuse: Fuse | None = None) -> "MemoryJournal":
        """The same record from its beginning."""
        return MemoryJournal(fuse, self.record)

    async def step(
        self,
        name: str,
        run: Callable[[], Awaitable[JsonValue]],
        *,
        with_next: bool = False,
    ) -> JsonValue:
        """Run and record, or replay; a replay that asks for another step is a bug."""
        place, self._at = self._at, self._at + 1
        if place < len(self.record):
            kept, value = self.record[place]
            assert kept == name, f"step {place} was {kept}, is now {name}"
            replayed: JsonValue = orjson.loads(value)
            return replayed
        self._fuse.tick()
        text = orjson.dumps(await run())
        self._fuse.tick()
        self._waiting.append((name, text))
        if not (with_next and self._waits):
            self._write()
        kept_value: JsonValue = orjson.loads(text)
        return kept_value

    def _write(self) -> None:
        self.record += self._waiting
        self._waiting.clear()

    async def steps(
        self,
        parts: Sequence[tuple[str, Callable[[], Awaitable[JsonValue]]]],
    ) -> Sequence[JsonValue]:
        """One after the other."""
        return [await self.step(name, run) for name, run in parts]

    async def got_on(self) -> None:
        """Count it."""
        self.progress += 1
