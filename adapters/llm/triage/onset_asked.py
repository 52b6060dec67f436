"""Whether a message asks since when, and nothing else: "since when exactly?", "when did it start?"."""

import re
from collections.abc import Sequence
from typing import Final

_WORD: Final = re.compile(r"[a-z']+")
_FILLERS: Final = frozenset({"and", "but", "so", "ok", "okay", "then", "please", "kortex"})
_OPENERS: Final[Sequence[tuple[str, ...]]] = (
    ("since", "when"),
    ("from", "when"),
    ("when",),
    ("how", "long"),
)
_WORDS: Final = """
    exactly precisely roughly about is was has did does it this that been going on the trouble problem
    outage incident slowness start started begin began begun happen happened slow failing so now first
    go wrong things all for
"""
_REST: Final = frozenset(_WORDS.split())


def asks_since_when(text: str) -> bool:
    """Of a text in lower case. A product, a time or anything else in it makes it another question."""
    if any(char.isdigit() for char in text):
        return False
    words = _WORD.findall(text)
    while words and words[0] in _FILLERS:
        words.pop(0)
    opener = next((each for each in _OPENERS if tuple(words[: len(each)]) == each), ())
    return bool(opener) and all(word in _REST for word in words[len(opener) :])
