"""An event loop in a thread of its own: what runs there does not wait for the loop of the answers."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Final

from bot.ports.loops import OtherLoop

# So long a thread that wakes waits for one that computes, each time; Python's own is 5 ms
# (https://docs.python.org/3/library/sys.html#sys.setswitchinterval).
SWITCH_S: Final = 0.00025


@asynccontextmanager
async def loop_thread(name: str) -> AsyncIterator[OtherLoop]:
    """A loop that runs until the body ends; what is left on it then is cancelled.

    All threads of the process take turns more often from then on.
    """
    sys.setswitchinterval(SWITCH_S)
    begun: Future[tuple[OtherLoop, asyncio.Event]] = Future()

    async def until_told() -> None:
        end = asyncio.Event()
        begun.set_result((OtherLoop(asyncio.get_running_loop()), end))
        await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(until_told()), name=name)
    thread.start()
    loop, end = await asyncio.wrap_future(begun)
    try:
        yield loop
    finally:
        loop.soon(end.set)
        await asyncio.to_thread(thread.join)
