"""`kortex run` in one process: serve until a signal stops it, then drain."""

import gc
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Final

from bot.app.start import Service, serving
from bot.cli.exit_codes import OK, announce
from bot.cli.invocation import guarded, loaded
from bot.settings.reading import load
from bot.upkeep.attention import Attention, StoppedEarly
from bot.upkeep.signals import Signals

STOPPING: Final = "stopping: no new work, running answers finish"


def run_one(config: Path, signals: Signals) -> int:
    return guarded(lambda: _serve(config, signals))


async def _serve(config: Path, signals: Signals) -> int:
    settings = loaded(config)

    def ready(service: Service) -> None:
        gc.collect()
        gc.freeze()  # what the start made stays until the end
        gc.enable()
        announce(
            f"kortex is serving; health at http://{settings.http.host}:{service.http_port}/readyz"
        )

    return await stay(serving(settings, read=lambda: load(config)), signals, ready)


async def stay(
    opening: AbstractAsyncContextManager[Service],
    signals: Signals,
    ready: Callable[[Service], None],
    tell: Callable[[str], None] = announce,
) -> int:
    """Serve until a signal stops it, then drain; a stop during the start ends that."""
    attention = Attention(signals)
    with attention.paid():
        async with AsyncExitStack() as stack:
            try:
                with attention.starting():
                    service = await stack.enter_async_context(opening)
            except StoppedEarly:
                tell("stopped before it served; no work was started")
                return OK
            await stack.enter_async_context(service.reload.at_each(attention.reload))
            ready(service)
            # Live turns are searched in vain: cycles are few, and can wait.
            gc.set_threshold(10_000)
            await attention.stop.wait()
            tell(STOPPING)
    return OK
