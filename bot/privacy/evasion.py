"""What hides a secret from the rules and not from people: characters nobody sees, and look-alikes.

A text that holds such characters next to ASCII ones is looked at a second time as it reads. Others,
whatever their language, cost one search; ASCII costs nothing.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Unicode's default-ignorable characters that text from outside has, bidi controls among them.
_UNSEEN: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f"
)
# Cyrillic and Greek letters that look like ASCII ones (Unicode's confusables.txt), in their order.
_ALIKE: Final = "аеорсухіјѕԁһԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"
_ASCII: Final = "aeopcyxijsdhqwABEKMHOPCTYXIJSABEZHIKMNOPTYXo"
_WIDE: Final = "\uff01-\uff5e"  # ASCII from "!" on, in full width
_WIDE_START, _WIDE_END, _WIDE_SHIFT = 0xFF01, 0xFF5F, 0xFEE0

HIDDEN: Final = re.compile(
    f"[{_UNSEEN}](?<=[ -~].)(?=[{_UNSEEN}]*[ -~])"
    f"|[{_ALIKE}](?:(?<=[A-Za-z0-9].)|(?=[A-Za-z0-9]))"
    f"|[{_WIDE}](?:(?<=[A-Za-z0-9{_WIDE}].)|(?=[A-Za-z0-9]))",
    re.DOTALL,
)
_REMOVED: Final = re.compile(f"[{_UNSEEN}]")
_AS_READ: Final = {
    **{ord(alike): ascii_ for alike, ascii_ in zip(_ALIKE, _ASCII, strict=True)},
    **{wide: chr(wide - _WIDE_SHIFT) for wide in range(_WIDE_START, _WIDE_END)},
}


@dataclass(frozen=True, slots=True)
class AsRead:
    """A text as it reads, one byte a character; what is found in it is found at `bytes_at`."""

    data: bytes
    _text: str
    _removed: Sequence[int]  # for each character left out, what stands after it

    def bytes_at(self, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The same spans in the text's own UTF-8."""
        own = [(self._own(start), self._own(end - 1) + 1) for start, end in spans]
        sizes: dict[int, int] = {}
        at = size = 0
        for offset in sorted({o for span in own for o in span}):
            size += len(self._text[at:offset].encode(errors="replace"))
            sizes[offset], at = size, offset
        return [(sizes[start], sizes[end]) for start, end in own]

    def _own(self, at: int) -> int:
        return at + bisect_right(self._removed, at)


def as_read(text: str) -> AsRead | None:
    """The text without disguise; None where there is none."""
    if text.isascii() or HIDDEN.search(text) is None:
        return None
    unseen = [found.start() for found in _REMOVED.finditer(text)]
    plain = _REMOVED.sub("", text)
    if not plain.isascii():
        plain = plain.translate(_AS_READ)
    removed = [at - before for before, at in enumerate(unseen)]
    return AsRead(plain.encode("ascii", errors="replace"), text, removed)
