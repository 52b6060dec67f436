"""Side jobs: they delay no request, fail alone, and end with the process."""

import asyncio

import pytest

from bot.slack.listeners.background_tasks import BackgroundTasks


async def test_a_failing_task_affects_no_other() -> None:
    done = asyncio.Event()

    async def fail() -> None:
        raise RuntimeError("no")

    async def succeed() -> None:
        done.set()

    background = BackgroundTasks()
    background.run("fail", fail())
    background.run("succeed", succeed())
    await background.drain(1.0)
    assert done.is_set()


async def test_draining_waits_for_running_tasks() -> None:
    gate, done = asyncio.Event(), asyncio.Event()

    async def job() -> None:
        await gate.wait()
        done.set()

    background = BackgroundTasks()
    background.run("job", job())
    async with asyncio.TaskGroup() as group:
        group.create_task(background.drain(5.0))
        gate.set()
    assert done.is_set()


@pytest.mark.parametrize("grace_s", [0.0, 0.01])
async def test_a_task_that_does_not_end_in_time_is_cancelled(grace_s: float) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def stuck() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    background = BackgroundTasks()
    background.run("stuck", stuck())
    await started.wait()
    await background.drain(grace_s)
    assert cancelled.is_set()


async def test_a_job_has_a_time_limit() -> None:
    background = BackgroundTasks(timeout_s=0.01)
    ended = asyncio.Event()

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    background.run("stuck", stuck())
    await background.drain(5.0)
    assert ended.is_set()
