"""The rules, read from the data files beside this module and compiled for the linear-time engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import re2
from pydantic import BaseModel, ConfigDict, TypeAdapter

from bot.privacy.checks import CHECKS, Check
from bot.privacy.lists import read

Kind = Literal["secret", "identifier", "personal"]
# A match's span and its groups'; (-1, -1) is none.
Spans = Sequence[tuple[int, int]]
# The first match between two positions.
Find = Callable[[bytes, int, int], Spans]
MATCHER_BYTES = 64 << 20  # RE2's default of 8 MiB makes it rebuild its automaton over and over
# A word may follow an escape without a boundary: `\nghp_…` in JSON, `%3Dghp_…`, a terminal's colour.
_LEAD = r"(?:\b|\\[nrtbf]|\\u00[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]*m)"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    check: str = ""
    gate: tuple[str, ...] = ()
    family: str = ""


_SECTION = TypeAdapter(dict[str, _Entry | str])


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule. `check` is None when the form alone decides."""

    name: str
    kind: Kind
    pattern: bytes
    gate: tuple[str, ...]
    family: str  # rules that seldom match and are looked for together; "" is none
    find: Find
    check: Check | None
    group: int
    name_group: int


@dataclass(frozen=True, slots=True)
class RuleSet:
    """`windowed` rules find what fits into a window; `documents` are run over the whole text."""

    windowed: tuple[Rule, ...]
    documents: tuple[Rule, ...]


@cache
def rule_set(*, pii: bool) -> RuleSet:
    """All rules; without personal data when `pii` is false. Reads files the first time."""
    structure, personal = read("structure"), read("personal")
    windowed = [
        *_compiled(read("tokens"), "secret"),
        *_compiled(structure["lines"], "secret"),
    ]
    if pii:
        windowed += _compiled(personal["identifiers"], "identifier")
        windowed += _compiled(personal["protected"], "personal")
    return RuleSet(tuple(windowed), tuple(_compiled(structure["documents"], "secret")))


def options() -> Any:
    """Bytes in, bytes out: positions need no translation."""
    chosen = re2.Options()
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.max_mem = MATCHER_BYTES
    chosen.log_errors = False
    return chosen


def finder(pattern: bytes) -> Find:
    """One call of the engine a match: the objects re2's own `search` makes cost more than it."""
    compiled = re2.compile(pattern, options())
    return partial(compiled._regexp.Match, re2._Anchor.UNANCHORED)  # noqa: SLF001


def any_of(rules: Sequence[Rule]) -> Find:
    """Finds where the first match of any of the rules starts."""
    bodies = [r.pattern.replace(b"(?P<s>", b"(?:").replace(b"(?P<k>", b"(?:") for r in rules]
    return finder(b"|".join(b"(?:" + b + b")" for b in bodies))


def _compiled(section: object, kind: Kind) -> list[Rule]:
    rules = []
    for name, value in _SECTION.validate_python(section).items():
        entry = _Entry(pattern=value) if isinstance(value, str) else value
        pattern = _with_lead(entry.pattern).encode("ascii")
        groups = re2.compile(pattern, options()).groupindex
        check = CHECKS[entry.check] if entry.check else None
        rules.append(
            Rule(
                name,
                kind,
                pattern,
                entry.gate,
                entry.family,
                finder(pattern),
                check,
                groups.get(b"s", 0),
                groups.get(b"k", 0),
            )
        )
    return rules


def _with_lead(pattern: str) -> str:
    flags, body = ("(?i)", pattern[4:]) if pattern.startswith("(?i)") else ("", pattern)
    if not body.startswith(r"\b"):
        return pattern
    body = body[2:]
    return f"{flags}{_LEAD}{body}" if "(?P<s>" in body else f"{flags}{_LEAD}(?P<s>{body})"
