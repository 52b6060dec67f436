"""The port of an on-call rota, valid names in it, and paths to names in JSON. Pure."""

import re
from collections.abc import Sequence
from typing import Final, Protocol

from pydantic import JsonValue

from adapters.errors import BadAnswer

# A rota names a few people; each e-mail address costs one look-up of fifty a minute in Slack.
MAX_PEOPLE: Final = 20
# Slack user ids are opaque, but all begin so (https://docs.slack.dev/reference/objects/user-object).
SLACK_ID: Final = re.compile(r"[UW][A-Z0-9]{1,30}")
_EMAIL: Final = re.compile(r"[^\s@<>,;]{1,64}@[^\s@<>,;]{1,255}")

_PATH: Final = re.compile(r"(?:[^.\[\]\s$*]+)?(?:\[\])*(?:\.[^.\[\]\s$*]+(?:\[\])*)*")
_EACH: Final = "[]"


class OnCall(Protocol):
    """One rota: a value; equal ones are the same rota."""

    async def people(self) -> frozenset[str]:
        """Lower-case e-mail addresses and Slack ids of the people on call now; may be empty.

        Raises AdapterError if they are unknown.
        """
        ...


def checked(names: frozenset[str]) -> frozenset[str]:
    """The names, addresses in lower case.

    Raises BadAnswer when one is neither an address nor a Slack id, or when there are too many: a
    list that is not understood whole is not a list of who may decide.
    """
    if len(names) > MAX_PEOPLE:
        raise BadAnswer(f"{len(names)} people are on call; at most {MAX_PEOPLE} can be looked up")
    if not all(SLACK_ID.fullmatch(name) or _EMAIL.fullmatch(name) for name in names):
        raise BadAnswer("someone on call is named by neither an e-mail address nor a Slack id")
    return frozenset(name if SLACK_ID.fullmatch(name) else name.lower() for name in names)


def steps(path: str) -> tuple[str, ...]:
    """`data.people[].email` → its steps. Raises ValueError for an invalid path."""
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
            raise BadAnswer("the path expects a list, but there is no list")
        return frozenset(text for item in value for text in texts_at(item, rest))
    if not isinstance(value, dict) or first not in value:
        raise BadAnswer(f"the answer has no {first!r} where the path expects it")
    return texts_at(value[first], rest)
