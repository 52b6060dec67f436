"""What people are called, as it may stand beside a question and in an answer."""

import re
import unicodedata
from typing import Final

_MOST_CHARS: Final = 40
_JOINS: Final = frozenset(" -'\u2019_")
_AT_AN_EDGE: Final = re.compile(r"(?<!\w)_+|_+(?!\w)")  # where it would be emphasis


def called(name: str) -> str:
    """A name that its owner chose, as plain words: nothing formats, links, mentions or ends a note.

    No colon is left either, so that none holds the time of a decision. Empty where nothing is left.
    """
    kept = "".join(char if _is_named_by(char) else " " for char in name)
    return " ".join(_AT_AN_EDGE.sub(" ", kept).split())[:_MOST_CHARS].strip(" -_")


def _is_named_by(char: str) -> bool:
    return char in _JOINS or unicodedata.category(char)[0] in "LMN"
