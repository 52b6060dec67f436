"""Another event loop of this process, and what may be asked of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class OtherLoop:
    """An event loop that runs in another thread, or in this one. Safe to share between threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The outcome of `work`, which runs there; who gives up waiting cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def soon(self, call: Callable[[], object]) -> None:
        """Have it called there. Raises RuntimeError when the loop is closed."""
        self.loop.call_soon_threadsafe(call)
