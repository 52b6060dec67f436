"""Find where a JSON value or a Python call ends, in linear time."""

import re
from typing import Final

_PYTHON_STEP: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z)|[\[({\])}]", re.DOTALL
)
_JSON_STEP: Final = re.compile(r"\\+|[\"'\[{\]}]")


class NoCall(ValueError):
    pass


def json_end(text: str, at: int) -> int:
    """The position behind the matching closing bracket. Raises NoCall."""
    end = Brackets().end(text, at)
    if end is None:
        raise NoCall("it does not end")
    return end


class Brackets:
    """The end of JSON that arrives in pieces, also escaped JSON or JSON in Python's quotes."""

    __slots__ = ("_depth", "_first", "_open", "_slashes", "_slashes_once")

    def __init__(self) -> None:
        self._depth = 0
        self._first = ""  # of its quotes
        self._open = ""  # the quote that a string goes on from
        self._slashes = 0  # right before the next piece
        self._slashes_once = 1  # how many one backslash of the JSON itself is here

    def end(self, text: str, at: int) -> int | None:
        """The position behind the last bracket, or None if it has not arrived yet."""
        behind = at  # the backslashes counted
        for step in _JSON_STEP.finditer(text, at):
            mark = step[0]
            if step.start() != behind:
                self._slashes = 0
            if mark[0] == "\\":
                self._slashes += len(mark)
                behind = step.end()
            elif mark in "\"'":
                self._at_quote(mark)
            elif not self._open:
                self._depth += 1 if mark in "[{" else -1
                if self._depth <= 0:
                    return step.end()
        if behind != len(text):
            self._slashes = 0
        return None

    def _at_quote(self, mark: str) -> None:
        if not self._first:
            self._first, self._slashes_once = mark, self._slashes + 1
        if (self._slashes // self._slashes_once) % 2:
            return
        if self._open == mark:
            self._open = ""
        elif not self._open and self._first in (mark, "'"):
            self._open = mark  # Python has both quotes


def python_end(text: str, at: int) -> int:
    """The position behind the Python bracket that matches the one at `at`. Raises NoCall."""
    depth = 0
    for step in _PYTHON_STEP.finditer(text, at):
        if step[0] in ("{", "[", "("):
            depth += 1
        elif step[0] in ("}", "]", ")"):
            depth -= 1
            if depth == 0:
                return step.end()
    raise NoCall("it does not end")
