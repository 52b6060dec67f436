"""The work that runs in this process, and what of it is still being written down."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

Tasks = dict[asyncio.Task[object], str]


class UnderWay:
    """Turns and decisions by their tasks, with the name of each.

    A task outlives its body: the workflow library then records that the work has ended. A process
    that left in between would leave ended work behind as unfinished.
    """

    def __init__(self) -> None:
        self.turns: Tasks = {}
        self.decisions: Tasks = {}
        self._recording: set[asyncio.Task[object]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def count(self) -> int:
        """How many bodies run."""
        return len(self.turns) + len(self.decisions)

    @contextmanager
    def counted(self, tasks: Tasks, name: str) -> Iterator[None]:
        """The current task's body is one of `tasks` until it ends."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a workflow is always run by one
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
        """Wait until no body runs."""
        await self._idle.wait()

    async def recorded(self, timeout_s: float) -> None:
        """Wait until what has ended is on record as ended, for so long at most."""
        if self._recording:
            await asyncio.wait(set(self._recording), timeout=timeout_s)
