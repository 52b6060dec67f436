"""A turn that is taken up again says nothing until it does something that it had not done before.

What its record tells was shown by the attempt before; shown once more it would take a finished answer
back to its first part, with a button to stop what is over.
"""

from collections.abc import Awaitable, Callable, Sequence

from pydantic import JsonValue

from bot.domain.turn_events import TurnEvent
from bot.ports.durability import Journal


class QuietReplay(Journal):
    """A journal, and the feed of what is told between its steps.

    Events of steps that are only replayed are kept and told, in order, when the first one runs.
    """

    def __init__(self, journal: Journal, tell: Callable[[TurnEvent], None]) -> None:
        self._journal = journal
        self._tell = tell
        self._replayed: list[TurnEvent] = []
        self._runs = False

    def feed(self, event: TurnEvent) -> None:
        """Tell it, now or when something runs. Never blocks."""
        if self._runs:
            self._tell(event)
        else:
            self._replayed.append(event)

    async def step(self, name: str, run: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        """See `Journal`."""
        return await self._journal.step(name, self._aloud(run))

    async def steps(
        self, parts: Sequence[tuple[str, Callable[[], Awaitable[JsonValue]]]]
    ) -> Sequence[JsonValue]:
        """See `Journal`."""
        return await self._journal.steps([(name, self._aloud(run)) for name, run in parts])

    def _aloud(self, run: Callable[[], Awaitable[JsonValue]]) -> Callable[[], Awaitable[JsonValue]]:
        async def running() -> JsonValue:
            self._runs = True
            for event in self._replayed:
                self._tell(event)
            self._replayed.clear()
            return await run()

        return running
