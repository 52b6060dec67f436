"""What a sentence mentions without claiming it of its result: lists cut short, contrasts, quoted runs."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from bot.chat.claims.names import folded
from bot.chat.claims.quantities import Figure
from bot.chat.claims.results import Result

_MORE = re.compile(r"\s(?:more|others?|further)\b", re.IGNORECASE)
_ITEM = re.compile(r"[\w./@:-]*[A-Za-z][\w./@:-]*")
_CONTRAST = re.compile(
    r"\b(?:not|nor|rather than|instead of|unlike|other than|except(?: for)?|apart from)\s+"
    r"(?:(?:in|on|of|from|by|at|with|the|a|an|for|to)\s+){0,3}[`*\"]{0,3}([\w][\w./@:-]*)",
    re.IGNORECASE,
)
_MOST_ITEMS: Final = 60
_BESIDE: Final = 40  # characters on each side of a figure


def contrasted(words: str) -> frozenset[str]:
    """The names that a sentence sets against its own: `in checkout, not in pricing`."""
    return frozenset(match[1].rstrip(".").lower() for match in _CONTRAST.finditer(words))


def is_listed(figure: Figure, words: str, results: Sequence[Result]) -> bool:
    """`a, b and 6 more`: whether a list that holds these names is that long, or none holds them."""
    if figure.family or not _MORE.match(words, figure.end):
        return False
    before = re.sub(r"(?:,? and|,|\+)\s*$", "", words[: figure.at])
    items = _items(before)
    if not items:
        return False
    found = [len(group) for result in results for group in _groups(result) if items <= group]
    return not found or len(items) + figure.raw in found


def _items(before: str) -> frozenset[str]:
    """The last names of a text that stand between commas."""
    head = max(before.rfind(mark) for mark in "(:;")
    pieces = before[head + 1 :].split(",")[-_MOST_ITEMS:]
    if len(pieces) == 1:
        pieces = pieces[0].split(" and ")
    # Before the first of them stands the sentence: its last word is the name.
    last = [_ITEM.findall(piece)[-1:] for piece in pieces]
    return frozenset(word.lower().rstrip(".") for each in last for word in each)


def _groups(result: Result) -> Iterator[frozenset[str]]:
    """The sets of names that a result lists."""
    yield frozenset(result.index.owners)
    yield frozenset(result.index.names)
    for value in result.fields.values():
        if isinstance(value, dict):
            yield frozenset(key.lower() for key in value)
        elif isinstance(value, list):
            rows = [row for row in value if isinstance(row, dict)]
            for key in ("product", "name", "object", "service"):
                yield frozenset(
                    said.lower() for row in rows if isinstance(said := row.get(key), str)
                )


def is_in_context(figure: Figure, words: str, results: Sequence[Result]) -> bool:
    """Whether a result has the figure with the same words beside it: it is quoted from there."""
    before = folded(words[max(0, figure.at - _BESIDE) : figure.at]).split()[-2:]
    behind = folded(words[figure.end : figure.end + _BESIDE]).split()[:2]
    said = [*before, *folded(figure.text).split(), *behind]
    at, size = len(before), len(folded(figure.text).split())
    runs = {
        " ".join(said[start : start + size + 2])
        for start in range(max(0, at - 2), at + 1)
        if start + size + 2 <= len(said)
    }
    return any(f" {run} " in f" {result.folded} " for run in runs for result in results)
