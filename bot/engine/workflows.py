"""Start a workflow once, and count the running ones of this process."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

from dbos import DBOS, SetWorkflowID

from bot.store.dialect import storage_errors

Begin = Callable[[], Coroutine[Any, Any, Exception | None]]
TurnToWrite = Callable[[], AbstractAsyncContextManager[None]]  # see `Database.turn_to_write`
Tasks = dict[asyncio.Task[object], str]


async def begin_workflow(
    workflow_id: str,
    body: Callable[..., Coroutine[None, None, None]],
    args: Sequence[object],
    turn_to_write: TurnToWrite,
) -> Exception | None:
    """Start a DBOS workflow under that id. Returns the error, for all callers that wait for it."""
    try:
        with storage_errors(), SetWorkflowID(workflow_id):
            async with turn_to_write():
                await DBOS.start_workflow_async(body, *args)
    except Exception as error:  # noqa: BLE001 - raised by each caller
        return error
    return None


class Starts:
    def __init__(self) -> None:
        self._in_progress: dict[str, asyncio.Task[Exception | None]] = {}

    async def once(
        self,
        name: str,
        is_started: Callable[[str], Awaitable[bool]],
        begin: Begin,
        background: asyncio.TaskGroup,
    ) -> bool:
        """Begin the workflow or join its start in progress. False when it had been started before.

        Raises errors of `is_started`, and the error that `begin` returns.
        """
        if name not in self._in_progress and await is_started(name):
            return False
        if (failure := await asyncio.shield(self._join(name, begin, background))) is not None:
            raise failure
        return True

    def _join(
        self, name: str, begin: Begin, background: asyncio.TaskGroup
    ) -> asyncio.Task[Exception | None]:
        if (begun := self._in_progress.get(name)) is None:
            # A separate task: a start cancelled half-way would leave a workflow that nothing runs.
            begun = self._in_progress[name] = background.create_task(begin())
            begun.add_done_callback(lambda _task: self._in_progress.pop(name))
        return begun

    @property
    def in_progress(self) -> bool:
        return bool(self._in_progress)

    async def none(self) -> None:
        """Wait until no start is in progress."""
        while self._in_progress:
            await asyncio.wait(self._in_progress.values())


class RunningWorkflows:
    """The turns and decisions that run here, by task.

    A task outlives its body, because DBOS records the end of the workflow afterwards. A process that
    exits before that leaves a finished workflow behind as unfinished.
    """

    def __init__(self) -> None:
        self.turns: Tasks = {}
        self.decisions: Tasks = {}
        self._recording: set[asyncio.Task[object]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def count(self) -> int:
        return len(self.turns) + len(self.decisions)

    @contextmanager
    def counted(self, tasks: Tasks, name: str) -> Iterator[None]:
        """Count the current task in `tasks` while its body runs."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a workflow always runs in a task
        tasks[task] = name
        self._idle.clear()
        try:
            yield
        finally:
            del tasks[task]
            self._recording.add(task)
            task.add_done_callback(self._recording.discard)
            if self.count == 0:
                self._idle.set()

    async def idle(self) -> None:
        await self._idle.wait()

    async def recorded(self, timeout_s: float) -> None:
        """Wait until the end of each finished workflow is recorded, for `timeout_s` at most."""
        if self._recording:
            await asyncio.wait(set(self._recording), timeout=timeout_s)
