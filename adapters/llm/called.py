"""Display names of people, made safe for prompts and answers."""

import re
import unicodedata
from typing import Final

_MOST_CHARS: Final = 40
_JOINS: Final = frozenset(" -'\u2019_")
_AT_AN_EDGE: Final = re.compile(r"(?<!\w)_+|_+(?!\w)")  # where it would be emphasis


def called(name: str) -> str:
    """A self-chosen display name as plain words, without formatting, links, mentions or brackets.

    Colons are removed too, so that no name imitates the time of a decision. May be empty.
    """
    kept = "".join(char if _is_named_by(char) else " " for char in name)
    return " ".join(_AT_AN_EDGE.sub(" ", kept).split())[:_MOST_CHARS].strip(" -_")


def _is_named_by(char: str) -> bool:
    return char in _JOINS or unicodedata.category(char)[0] in "LMN"
