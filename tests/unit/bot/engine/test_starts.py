"""Starts: each once however often it is asked for."""

import asyncio
from dataclasses import dataclass, field

import pytest

from bot.engine.workflows import Starts


@dataclass
class Asked:
    """Starts that end on request."""

    starts: Starts = field(default_factory=Starts)
    begun: list[str] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    failure: Exception | None = None

    async def is_started(self, name: str) -> bool:
        return name in self.begun and self.may_end.is_set()

    async def once(self, name: str, background: asyncio.TaskGroup) -> None:
        async def begin() -> Exception | None:
            self.begun.append(name)
            await self.may_end.wait()
            return self.failure

        await self.starts.once(name, self.is_started, begin, background)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_start_in_progress_is_joined() -> None:
    asked = Asked()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(asked.once("turn", group))
        await settled()
        asked.may_end.set()
    assert asked.begun == ["turn"]


async def test_a_started_turn_is_not_started_again() -> None:
    asked = Asked(begun=["turn"])
    asked.may_end.set()
    async with asyncio.TaskGroup() as group:
        await asked.once("turn", group)
    assert asked.begun == ["turn"]


async def test_every_caller_of_a_failed_start_gets_the_failure() -> None:
    asked = Asked(failure=KeyError("full"))
    asked.may_end.set()
    async with asyncio.TaskGroup() as group:
        told = await asyncio.gather(
            asked.once("turn", group), asked.once("turn", group), return_exceptions=True
        )
    assert list(told) == [asked.failure] * 2


async def test_a_caller_that_gives_up_does_not_cancel_the_start() -> None:
    asked = Asked()
    async with asyncio.TaskGroup() as group:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asked.once("turn", group)
        none = group.create_task(asked.starts.none())
        await settled()
        assert not none.done()
        asked.may_end.set()
