"""The fast model's try: the way out it was given is never shown, and decides who answers."""

from collections.abc import Callable
from dataclasses import replace

from adapters.llm.messages import StopReason
from bot.chat.models import NEED_MORE_CONTEXT
from bot.chat.round_record import RoundRecord
from bot.domain.turn_events import TextDelta, TurnEvent

TURNED_DOWN = "it asked for a stronger one"
CUT_OFF = "its answer did not fit"


class MarkerFilter:
    """Passes events on; text that may still become the marker waits until it cannot."""

    def __init__(self, marker: str, emit: Callable[[TurnEvent], None]) -> None:
        self._marker = marker
        self._emit = emit
        self._held = ""

    def __call__(self, event: TurnEvent) -> None:
        if not isinstance(event, TextDelta):
            self._emit(event)
            return
        text = self._held + event.text
        whole = text.replace(self._marker, "")
        keep = next(
            (n for n in range(len(self._marker) - 1, 0, -1) if self._marker.startswith(whole[-n:])),
            0,
        )
        keep = min(keep, len(whole))
        self._held = whole[len(whole) - keep :]
        if shown := whole[: len(whole) - keep]:
            self._emit(TextDelta(shown))

    def flush(self) -> None:
        """The text is over: what waited was no marker."""
        if self._held:
            self._emit(TextDelta(self._held))
            self._held = ""


def passed_on(record: RoundRecord) -> RoundRecord:
    """The record of a fast model's round, marked when the full model has to answer instead."""
    if record.error is not None or record.stopped:
        return record
    if NEED_MORE_CONTEXT in record.text:
        why = TURNED_DOWN
    elif record.stop_reason is StopReason.MAX_TOKENS:
        why = CUT_OFF
    else:
        return record
    notice = (
        f"frugal: asked {record.model or 'the fast model'} first, {why}; the full model answers"
    )
    return replace(record, passed_on=True, tool_calls=(), notices=(*record.notices, notice))
