"""A cheap literal pre-filter for expensive patterns."""

import re
from typing import Final

# Letters that a pattern in any case takes for these.
_SAME: Final = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
_RUN: Final = re.compile(r"[a-z0-9]+")


def plain(text: str) -> str:
    """Lower case as a pattern in any case sees it."""
    return (text if text.isascii() else text.translate(_SAME)).lower()


def words_of(text: str) -> frozenset[str]:
    """The runs of letters and digits of a text."""
    return frozenset(_RUN.findall(plain(text)))
