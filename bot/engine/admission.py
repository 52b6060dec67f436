"""Messages become turns: each durable once, with its place in its thread, before its workflow is begun.

What a platform waits for is one short transaction at the head of the database's queue. The workflow
is begun right after, by whoever is told of it; should that process end before, by whoever looks next.
"""

from collections.abc import Callable, Sequence
from typing import Final

import structlog
from pydantic import TypeAdapter, ValidationError

from bot.chat.traced import TurnTraces
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable
from bot.store.accepted import Accepted
from bot.store.sqlite_threads import urgent

_log = structlog.get_logger(__name__)
_ASK: Final = TypeAdapter(Ask)


class Admission:
    """For one event loop, that of `accepted`. `begin` is told of each turn that is accepted, once."""

    def __init__(
        self,
        accepted: Accepted,
        is_open: Callable[[], bool],
        begin: Callable[[Ask], None],
        traces: TurnTraces,
    ) -> None:
        self._accepted = accepted
        self._is_open = is_open
        self._begin = begin
        self._traces = traces

    async def start_turn(self, ask: Ask) -> None:
        """Durable, with its place in the thread, when it returns. Raises StorageUnavailable."""
        if not self._is_open():
            raise StorageUnavailable("shutting down; nothing was started")
        value = _ASK.dump_json(ask).decode()
        with self._traces.accepting(ask), urgent():
            is_new = await self._accepted.accept(ask.turn_id, ask.place.key, ask.ts, value)
        if is_new:
            self._begin(ask)


class LeftBehind:
    """Turns that were accepted by a process which ended before it began them."""

    def __init__(self, accepted: Accepted) -> None:
        self._accepted = accepted
        self._seen: frozenset[str] = frozenset()

    async def find(self, *, at_once: bool = False) -> Sequence[Ask]:
        """Those seen twice, for one that was just accepted is being begun; `at_once`: all of them.

        Raises StorageUnavailable.
        """
        left = await self._accepted.left()
        before, self._seen = self._seen, frozenset(left)
        asks = [_read(left[turn]) for turn in left if at_once or turn in before]
        return [ask for ask in asks if ask is not None]


def _read(stored: str) -> Ask | None:
    try:
        return _ASK.validate_json(stored)
    except ValidationError as error:
        # Of another release; its own processes can begin it.
        _log.error("turn_not_begun", problems=error.error_count())
        return None
