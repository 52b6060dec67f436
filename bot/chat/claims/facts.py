"""A fact: one row of a result, as far as a sentence can be entailed by it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeGuard

from pydantic import JsonValue

from bot.chat.claims.clocks import instants
from bot.chat.claims.quantities import KnownNumber

Fields = Mapping[str, JsonValue]


class Kind(StrEnum):
    """What sort of row it is: which verbs fit it."""

    SIGNAL = "signal"
    DEPLOY = "deploy"
    ROLLBACK = "rollback"
    LOG = "log"
    OBJECT = "object"
    SPAN = "span"
    COUNT = "count"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Fact:
    """One row. `figures` and `times` by what they are: now, usual, count, since, at.

    `terms` are the values that a word may name: a version, an actor, a state. `text` is what it
    quotes, letters and digits alone.
    """

    number: int
    kind: Kind
    subjects: frozenset[str]
    role: str = ""
    way: str = ""
    figures: Mapping[str, tuple[KnownNumber, ...]] = field(default_factory=dict)
    times: Mapping[str, tuple[datetime, ...]] = field(default_factory=dict)
    terms: Mapping[str, frozenset[str]] = field(default_factory=dict)
    text: str = ""
    is_whole: bool = True  # no other row of its kind was cut


def at_of(row: Fields, **keys: str) -> dict[str, tuple[datetime, ...]]:
    """The instants of a row by what they are; `keys` are the fields that hold them."""
    found = {slot: tuple(instants(text_of(row, key)))[:1] for slot, key in keys.items()}
    return {slot: at for slot, at in found.items() if at}


def numbers_of(
    row: object, keys: Sequence[str], family: str, size: float
) -> tuple[KnownNumber, ...]:
    """The numbers under some keys of a row, in a unit."""
    if not isinstance(row, Mapping):
        return ()
    return tuple(KnownNumber(v, v * size, family) for key in keys if is_number(v := row.get(key)))


def counted(number: float) -> tuple[KnownNumber, ...]:
    """A number of things, as the value of a figure."""
    return (KnownNumber(number, number, "count"),)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a JSON value is a number; `true` is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def names_of(*names: object) -> frozenset[str]:
    """The names among some values, in lower case."""
    return frozenset(name.lower() for name in names if isinstance(name, str) and name)


def words_of(*words: str) -> frozenset[str]:
    return frozenset(filter(None, words))


def rows_in(value: JsonValue) -> list[Fields]:
    """The objects of a list; none of anything else."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def text_of(row: Fields, key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def version_of(row: Fields, key: str) -> frozenset[str]:
    """A version without its `v`, in lower case; none where the row does not name it."""
    return words_of(text_of(row, key).lower().removeprefix("v"))


def rollbacks_in(deploys: Sequence[Fields]) -> Iterator[tuple[Fields, Fields]]:
    """The deploys that went back to the version before, each as the one undone and the one that did."""
    by_step: dict[tuple[str, str, str], list[Fields]] = {}
    for row in deploys:
        of = text_of(row, "product"), text_of(row, "version"), text_of(row, "previous_version")
        if all(of):
            by_step.setdefault(of, []).append(row)
    for (product, version, before), backs in by_step.items():
        gone = by_step.get((product, before, version), ())
        for back in backs:
            earlier = [row for row in gone if text_of(row, "ts") < text_of(back, "ts")]
            if earlier and version != before:
                yield max(earlier, key=lambda row: text_of(row, "ts")), back
