"""Parameters that could mean more than they seem to: empty ones, wildcards, hidden line breaks."""

import re
from collections.abc import Collection, Iterator, Mapping

from pydantic import JsonValue

_WILDCARD = re.compile(r"[*\x00-\x1f\x7f\u2028\u2029]")


def too_wide(params: Mapping[str, JsonValue], free_text: Collection[str] = ()) -> str | None:
    """The first parameter that selects nothing in particular, in words; None when all do.

    An empty selector is everything to most systems, and `*` to the others.
    """
    for name, value in params.items():
        if name in free_text:
            continue
        for path, each in _leaves(name, value):
            if each is None or each in ("", [], {}) or (isinstance(each, str) and not each.strip()):
                return f"{path} is empty, which many systems take for everything; leave it out"
            if isinstance(each, str) and _WILDCARD.search(each):
                return f"{path} holds a wildcard or a control character; name what is meant"
    return None


def _leaves(path: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    match value:
        case dict() if value:
            for key, each in value.items():
                yield f"a key of {path}", key
                yield from _leaves(f"{path}.{key}", each)
        case list() if value:
            for each in value:
                yield from _leaves(path, each)
        case _:
            yield path, value
