"""Words of a model that rest on nothing so far, kept from people until they do or the round has ended.

Nobody should read an answer grow that is taken back because the model looked at nothing.
"""

import re
from collections.abc import Callable
from typing import Final

from bot.domain.budget import NO_MODEL
from bot.domain.turn_events import RoundStarted, TextDelta, TurnEvent

_CITES: Final = re.compile(r"\[E\d")


class HeldWords:
    """Stands before `emit` for one round. `may_cite`: there is evidence, which a citation rests on."""

    def __init__(self, emit: Callable[[TurnEvent], None], *, may_cite: bool) -> None:
        self._emit = emit
        self._may_cite = may_cite
        self._holds = True
        self._held: list[str] = []

    def __call__(self, event: TurnEvent) -> None:
        """Pass it on, or keep it."""
        if isinstance(event, RoundStarted) and event.provider == NO_MODEL:
            self.release()
        if not (self._holds and isinstance(event, TextDelta)):
            self._emit(event)
            return
        self._held.append(event.text)
        # A citation comes in pieces: of what was held before, its first characters count too.
        if self._may_cite and _CITES.search("".join(self._held[-4:])):
            self.release()

    def release(self) -> None:
        """Tell what was kept, and keep nothing from here on."""
        self._holds = False
        text = "".join(self._held)
        self._held.clear()
        if text:
            self._emit(TextDelta(text))

    def drop(self) -> None:
        """What was kept is nobody's answer."""
        self._held.clear()
