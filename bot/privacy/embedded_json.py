"""JSON within a text, such as a log line or the `data:` lines of SSE, redacted by its values.

A rule that reads escaped text takes the `n` of `\\n` for a part of what follows. So every text of the JSON
is decoded and redacted, and written again only where that changed it. All else stays as it was written.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

_OPENING: Final = re.compile(
    r'\{\s*"|\[\s*["{\[]|"\s*[\[{]\s*\\"'
)  # or JSON that is a text of its own
# A value with such an escape has other characters than its text, so the rules may not know it there.
_HIDING: Final = re.compile(r"\\[u/]")
_TOKEN: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*|-?Infinity|NaN|true|false|null', re.DOTALL
)
_LONGEST_ESCAPE: Final = 6
_MOST_FAILURES: Final = 200  # openings that begin no JSON; each may cost a look at the whole text

RedactValue = Callable[[JsonValue], JsonValue]
Values = tuple[JsonValue, JsonValue]  # as it was, and redacted


class Mask(NamedTuple):
    """`words` replace the characters from `start` to `end`. `is_secret`: in any text."""

    start: int
    end: int
    words: str
    is_secret: bool


def hides(text: str) -> bool:
    """Whether JSON in the text may have values that only decoding shows."""
    return '"' in text and _HIDING.search(text) is not None


def pieces(text: str) -> Iterator[tuple[int, int]]:
    """The outermost JSON that holds a text, by position."""
    at = failures = 0
    decoder = json.JSONDecoder()
    while failures < _MOST_FAILURES:
        found = _OPENING.search(text, at)
        if found is None:
            return
        try:
            _value, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at, failures = found.start() + 1, failures + 1
            continue
        yield found.start(), at


def values_of(texts: Sequence[str], redact: RedactValue) -> list[Values | None]:
    """For each text of JSON its value and the redacted one; None where a name is there twice."""
    if not texts:
        return []
    found: list[JsonValue] = []
    known: list[bool] = []
    for text in texts:
        try:
            found.append(_decode(text))
            known.append(True)
        except (ValueError, RecursionError):
            known.append(False)
    try:
        safe = redact(found)  # together, which makes it fast
    except (RecursionError, TypeError):
        return [None] * len(texts)
    assert isinstance(safe, list)  # noqa: S101 - the copy of a list is a list
    pairs = zip(found, safe, strict=True)
    return [next(pairs) if is_known else None for is_known in known]


def redacted_piece(text: str, values: Values | None, masks: Sequence[Mask]) -> str:
    """JSON with the same shape: its values redacted, and those masks applied that these lack.

    Without values it has the masks alone.
    """
    tokens = [*_TOKEN.finditer(text)]
    new = _changes(values, len(tokens)) if values else None
    made: list[str] = []
    at = first = 0
    for number, token in enumerate(tokens):
        start, end = token.span()
        while first < len(masks) and masks[first].end <= start:
            first += 1
        last = first
        while last < len(masks) and masks[last].start < end:
            last += 1
        written = token[0]
        if new is not None and new[number] is not None:
            written = _encode(new[number])
        elif first == last:
            continue
        if written.startswith('"'):
            written = _masked(token[0], written, start, masks[first:last], are_all=new is None)
        made += (text[at:start], written)
        at = end
    return "".join((*made, text[at:]))


def _changes(values: Values, count: int) -> list[JsonValue] | None:
    try:
        before, after = (_leaves(each, []) for each in values)
    except RecursionError:
        return None
    if not len(before) == len(after) == count:
        return None
    pairs = zip(before, after, strict=True)
    return [None if type(was) is type(now) and was == now else now for was, now in pairs]


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


_decode: Final = json.JSONDecoder(object_pairs_hook=_once).decode
_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def _leaves(value: JsonValue, found: list[JsonValue]) -> list[JsonValue]:
    if isinstance(value, dict):
        for name, item in value.items():
            found.append(name)
            _leaves(item, found)
    elif isinstance(value, list):
        for item in value:
            _leaves(item, found)
    else:
        found.append(value)
    return found


def _masked(was: str, written: str, start: int, masks: Sequence[Mask], *, are_all: bool) -> str:
    inside: list[Mask] = []
    for mask in masks:
        first, last = max(1, mask.start - start), min(len(was) - 1, mask.end - start)
        # An address right behind a backslash may begin with a part of an escape: its value decides.
        is_sure = mask.is_secret or (was == written and was[first - 1] != "\\")
        if not (are_all or is_sure):
            continue
        whole = aligned(was, Mask(first, last, mask.words, mask.is_secret))
        if whole is not None:
            inside.append(whole)
    if was == written:
        return spliced(was, inside)
    for mask in inside:
        written = written.replace(was[mask.start : mask.end], mask.words)
    return written


def spliced(text: str, masks: Sequence[Mask]) -> str:
    """The text with the masks, which are in order."""
    made: list[str] = []
    at = 0
    for mask in masks:
        made += (text[at : mask.start], mask.words)
        at = mask.end
    return "".join((*made, text[at:]))


def aligned(text: str, mask: Mask) -> Mask | None:
    """The mask without a part of an escape at its ends; None where nothing is left to mask."""
    if "\\" not in text:
        return mask if mask.start < mask.end else None
    first, last = _escape_around(text, mask.start), _escape_around(text, mask.end)
    start = first[1] if first else mask.start
    end = last[0] if last else mask.end
    # `n@example.com` behind a backslash is no address without its `n`.
    if start >= end or (first and not mask.is_secret and not text[start].isalnum()):
        return None
    return mask._replace(start=start, end=end)


def _escape_around(text: str, at: int) -> tuple[int, int] | None:
    begin = text.rfind("\\", max(0, at - _LONGEST_ESCAPE + 1), at)
    if begin < 0:
        return None
    before = len(text[:begin]) - len(text[:begin].rstrip("\\"))
    begin -= before % 2
    end = begin + (_LONGEST_ESCAPE if text[begin + 1 : begin + 2] == "u" else 2)
    return (begin, end) if begin < at < end else None


def is_quoted(text: str, at: int) -> bool:
    """Whether a quote is open on the line at that position, as in a part of JSON."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line.count('"') % 2 == 1 or '\\"' in line
