"""Messages become turns: each durable once, with its place in its thread, before its workflow is begun.

What a platform waits for is one short transaction. The workflow
is begun right after, by whoever is told of it; should that process end before, by whoever looks next.
"""

from asyncio import Lock
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from pydantic import TypeAdapter, ValidationError

from bot.chat.traced import TurnTraces
from bot.domain.ids import TurnId
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable
from bot.store.accepted import Accepted, Taken

_log = structlog.get_logger(__name__)
_ASK: Final = TypeAdapter(Ask)
# A message may be told of twice at once, and again where the answer to that was lost. Only speed depends
# on it: the database knows them all.
REMEMBERED: Final = 4096

Begin = Callable[[Ask, Taken], None]


class Admission:
    """`begin` is told of each turn that is accepted, once.

    What was accepted here is known without the database when it is delivered again.
    """

    def __init__(
        self,
        accepted: Accepted,
        is_open: Callable[[], bool],
        begin: Begin,
        traces: TurnTraces,
    ) -> None:
        self._accepted = accepted
        self._is_open = is_open
        self._begin = begin
        self._traces = traces
        self._known: OrderedDict[TurnId, Lock] = OrderedDict()

    async def start_turn(self, ask: Ask) -> None:
        """Durable, with its place in the thread, when it returns. Raises StorageUnavailable."""
        if not self._is_open():
            raise StorageUnavailable("shutting down; nothing was started")
        if (accepting := self._known.get(ask.turn_id)) is None:
            accepting = self._known[ask.turn_id] = Lock()
            await self._accept(ask, accepting)
            return
        async with accepting:
            is_known = ask.turn_id in self._known
        if not is_known:
            await self.start_turn(ask)

    async def _accept(self, ask: Ask, accepting: Lock) -> None:
        value = _ASK.dump_json(ask).decode()
        async with accepting:
            try:
                with self._traces.accepting(ask):
                    taken = await self._accepted.accept(ask.turn_id, ask.place.key, ask.ts, value)
            except BaseException:
                self._known.pop(ask.turn_id, None)
                raise
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        if taken is not Taken.KNOWN:
            self._begin(ask, taken)


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
