"""The end of DBOS in a process that goes on for a moment: it takes the loop's threads with it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dbos import DBOS

HAND_OVER_S = 5.0  # for cancelled work to close what it holds


async def end_dbos() -> None:
    """Destroy it, and give the loop threads of its own again.

    DBOS puts its own in the place of the loop's default and shuts them down; whatever is closed
    afterwards would end in "cannot schedule new futures after shutdown".
    """
    loop, threads = asyncio.get_running_loop(), ThreadPoolExecutor()
    loop.set_default_executor(threads)
    await loop.run_in_executor(threads, partial(DBOS.destroy, destroy_registry=True))
    loop.set_default_executor(threads)  # what was cancelled late may have asked DBOS once more
