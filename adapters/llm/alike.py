"""Events that are alike but for a piece of text: of all but the first, only that piece is read.

Most of an answer is such events, and what stands around their text is nine tenths of the bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import orjson

_PROBE: Final = "\x00 probe"
_PROBE_BYTES: Final = orjson.dumps(_PROBE)
# A server whose events differ otherwise (a time in each, padding) is not looked at for ever.
_MOST_IN_VAIN: Final = 4


class Piece(NamedTuple):
    """A text that an event brings, and what it is added to."""

    text: str
    add: Callable[[str], None]


class Alike:
    """What the last event that was read whole had before and after its piece of text.

    `piece_of` is the piece of an event that does nothing else than bring it; None for any other. It is
    asked after the event was taken.
    """

    __slots__ = ("_add", "_after", "_before", "_in_vain", "_piece_of")

    def __init__(self, piece_of: Callable[[Mapping[str, object]], Piece | None]) -> None:
        self._piece_of = piece_of
        self._before = self._after = b""
        self._add: Callable[[str], None] | None = None
        self._in_vain = 0

    def take(self, payloads: Sequence[bytes], at: int) -> int:
        """Add the texts of those from `at` on, up to one that is not alike; how many there were.

        With one string for another JSON stays the JSON that it is, but for that string.
        """
        if self._add is None:
            return 0
        found: list[str] = []
        before, after, loads = self._before, self._after, orjson.loads
        start, end = len(before), -len(after)
        try:
            for payload in islice(payloads, at, None):
                if not (payload.startswith(before) and payload.endswith(after)):
                    break
                text = loads(payload[start:end])
                if text.__class__ is not str:
                    break
                found.append(text)
        except orjson.JSONDecodeError:
            pass  # no string, or more than one
        if found:
            self._in_vain = 0
            self._add("".join(found))
        return len(found)

    def learn(self, payload: bytes, event: Mapping[str, object]) -> None:
        """An event that was read whole, which those that come next may be like."""
        self._add = None
        if self._in_vain > _MOST_IN_VAIN:
            return
        piece = self._piece_of(event)
        if piece is None or not piece.text or piece.text == _PROBE:
            return
        self._in_vain += 1
        before, _, after = payload.partition(orjson.dumps(piece.text))
        try:
            probed = self._piece_of(orjson.loads(before + _PROBE_BYTES + after))
        except orjson.JSONDecodeError:
            return
        if after and probed is not None and probed.text == _PROBE:  # the place was the text's
            self._before, self._after, self._add = before, after, piece.add
