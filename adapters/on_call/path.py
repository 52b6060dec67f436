"""A path into a JSON answer, such as `data.people[].email`, and the walk along it. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from adapters.errors import BadAnswer

_PATH: Final = re.compile(r"(?:[^.\[\]\s$*]+)?(?:\[\])*(?:\.[^.\[\]\s$*]+(?:\[\])*)*")
_EACH: Final = "[]"


def steps(path: str) -> tuple[str, ...]:
    """`data.people[].email` → its steps. Raises ValueError for what is no path."""
    if not path or not _PATH.fullmatch(path):
        raise ValueError('write a path such as "people[].email", or "[]" for a plain list')
    return tuple(step for step in path.replace(_EACH, f".{_EACH}").split(".") if step)


def texts_at(value: JsonValue, path: Sequence[str]) -> frozenset[str]:
    """Every text at the end of the path. Raises BadAnswer when it leads anywhere else."""
    if not path:
        if not isinstance(value, str):
            raise BadAnswer("the path leads to something that is not a text")
        return frozenset({value.strip()})
    first, rest = path[0], path[1:]
    if first == _EACH:
        if not isinstance(value, list):
            raise BadAnswer("the path expects a list where there is none")
        return frozenset(text for item in value for text in texts_at(item, rest))
    if not isinstance(value, dict) or first not in value:
        raise BadAnswer(f"the answer has no {first!r} where the path expects it")
    return texts_at(value[first], rest)
