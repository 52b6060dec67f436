"""Whether arguments mention a product of another team, in a form beyond a word of a sentence.

The configured products are known by name, so a host, a path, a cell, an index or a pod that holds
one is found under any key.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from tools.hidden_texts import readings

_JOINTS: Final = "-_."
_BEFORE: Final = "=:/\"'`([{,;|<>@#\\\t"
_AFTER: Final = ":/@=|,;\t"
_TABLE: Final = re.compile(r"\b(?:from|join|into|update|table|index|source)\s+\Z", re.IGNORECASE)
# "the payments-related alerts": a word of a sentence. Alone, it could be an index's name.
_COMPOUND: Final = re.compile(
    r"-(?:related|like|based|wide|specific|side|only|facing|driven|induced|caused|owned)(?=[.,;:!?)]?(?:\s|\Z))",
    re.IGNORECASE,
)
_KEYWORD_CHARS: Final = 16


def mentioned(arguments: object, products: Sequence[str], own: Sequence[str]) -> bool:
    """Whether a text of the arguments holds one of `products`; a name of `own` holds none."""
    if not products:
        return False
    wanted, ours = _any_of(tuple(products)), _any_of(tuple(own)) if own else None
    for text in _texts(arguments):
        for each in filter(None, readings(text)):
            plain = ours.sub(lambda found: "\0" * len(found[0]), each) if ours else each
            if any(_is_name(plain, *found.span()) for found in wanted.finditer(plain)):
                return True
    return False


@lru_cache(maxsize=64)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    longest = sorted(names, key=lambda name: (-len(name), name))
    some = "|".join(map(re.escape, longest))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{some})(?![A-Za-z0-9])", re.IGNORECASE)


def _texts(arguments: object) -> Iterator[str]:
    left = [arguments]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left += [*map(str, value), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            left += value


def _is_name(text: str, start: int, end: int) -> bool:
    before, after = text[:start][-2:], text[end : end + 2]
    if not text[:start].strip() and not text[end:].strip():
        return True
    if before[-1:] and before[-1] in _JOINTS and before[:-1].isalnum():
        return True
    if after[:1] and after[0] in _JOINTS and after[1:].isalnum():
        compound = None if before[-1:].strip() else _COMPOUND.match(text, end)
        if compound is None or not (text[:start] + text[compound.end() :]).strip():
            return True
    if before[-1:] and before[-1] in _BEFORE:
        return True
    if after[:1] and after[0] in _AFTER and after[1:].strip():
        return True
    return _TABLE.search(text[max(0, start - _KEYWORD_CHARS) : start]) is not None
