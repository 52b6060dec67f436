"""The keys of a configuration file: their lines, and suggestions for misspelt ones."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final, get_args

from pydantic import BaseModel

from bot.settings.named_backends import NAMED
from tools.output import lines_of

_NEAR: Final = 0.6  # of difflib's ratio; its own default, at which one slip in four letters shows
_MOST: Final = 3  # places that are named; more of them say nothing
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([^.\s\"']+)")
_HEADER = re.compile(r"^(\[\[?)([^\[\]]+)\]")

Shape = type[BaseModel]


def line_of(text: str, path: Sequence[str]) -> int:
    """The line (from 1) where a key is set, or its table begins, or 1.

    `path` is pydantic's: a number is the place in a list of tables or of values.
    """
    numbers = [at for at, part in enumerate(path) if part.isdigit()]
    entries = list(path[: numbers[0]]) if numbers else []
    wanted = [part for part in path if not part.isdigit()]
    above, at, table, seen = 1, 0, list[str](), 0
    for number, line in enumerate(lines_of(text), start=1):
        stripped = line.strip()
        header = _HEADER.match(stripped)
        if header:
            table = _parts(header[2])
            seen += header[1] == "[[" and table == entries
        elsewhere = entries and table[: len(entries)] == entries
        if elsewhere and seen not in (0, int(path[numbers[0]]) + 1):
            continue
        full = table if header else [*table, *_parts(stripped.partition("=")[0])]
        if header and table[: len(wanted)] == wanted:
            at = at or number  # it, or the first table below it
        elif full == wanted[: len(full)] and (header or len(full) > len(table)):
            above = number
        if full == wanted and not header:
            return number
    return at or above


def _parts(dotted: str) -> list[str]:
    return ["".join(found) for found in _PART.findall(dotted)]


def did_you_mean(shape: Shape, path: Sequence[str]) -> str:
    """What to say after "unknown key": the nearest key of that table, or the table of that key."""
    above, key = [part for part in path[:-1] if not part.isdigit()], path[-1]
    known = {each[-1]: words for each, words in _below(_at(shape, list(path[:-1])), above, 1)}
    near = [known[each] for each in get_close_matches(key, known, n=1, cutoff=_NEAR)]
    named = near or [words for each, words in _below((shape,), [], 9) if each[-1] == key]
    if not 0 < len(named) <= _MOST:
        return ""
    return f"; did you mean {' or '.join(named)}?"


def every_key(shape: Shape) -> Iterator[tuple[str, ...]]:
    """The path of each key and table, `NAME` where the operator chooses one."""
    for path, _ in _below((shape,), [], 9):
        yield path


def _below(
    shapes: Sequence[Shape], above: Sequence[str], depth: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    for shape in shapes:
        for name, field in shape.model_fields.items():
            path = tuple(above) if name == NAMED else (*above, field.alias or name)
            inside = _shapes(field.annotation)
            listed = getattr(field.annotation, "__origin__", None)
            written = f"{'.'.join(path)}"
            if inside and listed is tuple:
                yield path, f"[[{written}]]"
            elif inside or listed is dict:
                yield path, f"[{written}]"
            else:
                table = f" in [{'.'.join(above)}]" if above and depth > 1 else ""
                yield path, path[-1] + table
            if depth > 1:
                named = ("NAME",) if listed is dict else ()
                yield from _below(inside, [*path, *named], depth - 1)


def _at(shape: Shape, path: list[str]) -> Sequence[Shape]:
    shapes: Sequence[Shape] = (shape,)
    while path:
        part = path.pop(0)
        fields = [
            f for each in shapes for n, f in each.model_fields.items() if part in (n, f.alias)
        ]
        if not fields:
            return ()
        shapes = [found for field in fields for found in _shapes(field.annotation)]
        if path and getattr(fields[0].annotation, "__origin__", None) in (dict, tuple):
            path.pop(0)  # the name or the place of an entry
    return shapes


def _shapes(annotation: object) -> list[Shape]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for each in get_args(annotation) for found in _shapes(each)]
