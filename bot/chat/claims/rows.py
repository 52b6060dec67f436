"""What a sweep says of each product: a sentence that names one is held against its rows alone.

`checkout-db` is of `checkout`: people say "the pool of checkout".
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bot.chat.claims.facts import Fields, rows_in, text_of
from bot.chat.claims.sentences import agrees

# Objects by product's name, in the sweeps' results.
BY_PRODUCT: Final = frozenset(
    ["within", "too_short", "traffic", "lines", "errors", "pods", "ways_slow"]
)
_WHOSE: Final = ("product", "callee")
_MOVED: Final = 3.0  # spreads from which core__sweep_metrics counts a role as changed
_MORE: Final = frozenset({"new", "grown"})
_FELT: Final = frozenset({"latency", "errors"})  # by users
ROLES: Final[Mapping[str, re.Pattern[str]]] = {
    role: re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)
    for role, words in {
        "latency": r"latenc(?:y|ies)|p50|p75|p9\d\d?|response times?|slower|faster",
        "errors": r"errors?|error (?:lines?|ratio|rate)|fail|fails|failing|failures?|5xx",
        "traffic": r"traffic|throughput|rps|qps|load|requests per second|request rate",
        "cpu": r"cpu",
        "memory": r"memory|heap|rss",
        "disk": r"disks?|storage",
        "pool": r"pools?|connections?",
        "queue": r"queues?|backlog",
        "restarts": r"restarts?|restarted",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Row:
    """Which way something of a product went: up, down or flat."""

    product: str
    role: str
    direction: str
    is_small: bool = False  # so that it may as well be called flat

    @property
    def says(self) -> str:
        """`latency of checkout up`."""
        told = "within its usual" if self.direction == "flat" else self.direction
        return f"{self.role or 'lines'} of {re.sub(r'[`*_~<>|]', '', self.product)[:60]} {told}"


def owners_of(row: Fields) -> frozenset[str]:
    """The products that a row is about, in lower case; empty where it names none."""
    if not isinstance(row.get("product"), str):
        return frozenset()
    names = row.get("names")
    told = [row.get(key) for key in _WHOSE] + (names if isinstance(names, list) else [])
    return frozenset(one.lower() for one in told if isinstance(one, str) and one)


def named_in(words: str, owners: Collection[str]) -> frozenset[str]:
    """The products that a sentence names, and their parts."""
    lowered = words.lower()
    named = [one for one in owners if one in lowered and _is_word(one, lowered)]
    parts = tuple(f"{one}{mark}" for one in named for mark in "-._/:")
    return frozenset([*named, *(one for one in owners if parts and one.startswith(parts))])


def _is_word(name: str, text: str) -> bool:
    at = text.find(name)
    while at >= 0:
        beside = text[at - 1 : at] + text[at + len(name) : at + len(name) + 1]
        if not any(each.isalnum() or each in "_-" for each in beside):
            return True
        at = text.find(name, at + 1)
    return False


def rows_of(fields: Fields) -> Iterator[Row]:
    """Every row of a sweep that says which way something went."""
    for row in rows_in(fields.get("shifts")):
        yield from _shift(row)
    for row in rows_in(fields.get("standing")):
        if row.get("direction") in ("up", "down"):
            yield Row(text_of(row, "product"), text_of(row, "role"), text_of(row, "direction"))
    for row in rows_in(fields.get("changes")):
        role = "errors" if row.get("level") in ("error", "fatal") else ""
        change = text_of(row, "change")
        way = "up" if change in _MORE else "down" if change == "gone" else "flat"
        yield Row(text_of(row, "product"), role, way)
    within = fields.get("within")
    for product, roles in within.items() if isinstance(within, dict) else ():
        for role in roles.split() if isinstance(roles, str) else ():
            yield Row(product, role, "flat")


def disagreeing(words: str, claimed: list[tuple[str, bool]], own: list[Row]) -> Row | None:
    """A row of the sentence's subjects that contradicts it; None if one supports it."""
    roles = {role for role, pattern in ROLES.items() if pattern.search(words)}
    of_roles = [row for row in own if row.role in roles]
    told = of_roles if roles else own
    for way, denied in claimed:
        if told and not _borne(way, denied, told, felt=not roles):
            return told[0]
    return None


def _borne(way: str, denied: bool, rows: list[Row], *, felt: bool) -> bool:
    if way == "flat" and not denied and felt:
        # Normal in some roles only does not mean normal.
        return all(row.direction == "flat" or row.is_small or row.role not in _FELT for row in rows)
    return any(agrees(way, denied, row.direction) or row.is_small for row in rows)


def _shift(row: Fields) -> Iterator[Row]:
    product, way = text_of(row, "product"), text_of(row, "direction")
    score = row.get("score")
    if way in ("up", "down"):
        is_small = isinstance(score, int | float) and score < _MOVED
        yield Row(product, text_of(row, "role"), way, is_small)
    before, after = row.get("before"), row.get("after")
    if isinstance(before, int | float) and isinstance(after, int | float) and before != after:
        role = "errors" if row.get("what") == "failing" else "latency"
        yield Row(product, role, "up" if after > before else "down")
