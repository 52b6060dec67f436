"""Whether somebody asked a turn that runs here to stop."""

import asyncio


class Signal:
    """A stop that was, or was not, asked for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def requested(self) -> bool:
        """Whether somebody asked."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Until somebody asks."""
        await self._event.wait()

    def set(self) -> None:
        """Somebody asked the turn to stop."""
        self._event.set()
