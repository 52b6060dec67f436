"""The rules and the checks they name, read from the data files beside this module and compiled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from bot.privacy import checksums, looks
from bot.privacy.lists import read, read_list
from bot.privacy.matching import Find, finder, groups

Check = Callable[[str, str], bool]

CHECKS: Final[Mapping[str, Check]] = {
    check.__name__: check
    for check in (
        looks.random, looks.assigned_quoted, looks.assigned_plain, looks.spoken, looks.header_value, looks.artifactory, looks.vendor_value,
        looks.base64_pair, checksums.card, checksums.iban, checksums.us_ssn, checksums.email,
        checksums.phone, checksums.phone_named, checksums.base58check, checksums.bech32,
    )
}  # fmt: skip

Kind = Literal["secret", "identifier", "personal"]
# A word may follow an escape without a boundary: `\nghp_…` in JSON, `%3Dghp_…`, a terminal's colour.
_LEAD = r"(?:\b|\\[nrtbf]|\\u00[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]*m)"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    check: str = ""
    gate: tuple[str, ...] = ()
    family: str = ""
    list: str = ""
    before: bool = False


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
    before: bool  # the check gets what stands before the value on its line, as its name


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
    documents = _compiled(structure["documents"], "secret")
    return RuleSet(tuple(windowed), tuple(documents))


def any_of(rules: Sequence[Rule]) -> Find:
    """Finds where the first match of any of the rules starts."""
    bodies = [r.pattern.replace(b"(?P<s>", b"(?:").replace(b"(?P<k>", b"(?:") for r in rules]
    return finder(b"|".join(map(_scoped, bodies)))


def _scoped(body: bytes) -> bytes:
    """With flags that hold for this one alone."""
    for flags in (b"i", b"m"):
        if body.startswith(b"(?" + flags + b")"):
            return b"(?" + flags + b":" + body[4:] + b")"
    return b"(?:" + body + b")"


def _compiled(section: object, kind: Kind) -> list[Rule]:
    rules = []
    for name, value in _SECTION.validate_python(section).items():
        entry = _Entry(pattern=value) if isinstance(value, str) else value
        gate = entry.gate
        if entry.list:
            gate = tuple(str(read_list(entry.list)).split())
        text = entry.pattern.replace("%LIST%", "|".join(gate))
        pattern = _with_lead(text).encode("ascii")
        numbers = groups(pattern)
        check = CHECKS[entry.check] if entry.check else None
        rules.append(
            Rule(
                name,
                kind,
                pattern,
                gate,
                entry.family,
                finder(pattern),
                check,
                numbers.get("s", 0),
                numbers.get("k", 0),
                entry.before,
            )
        )
    return rules


def _with_lead(pattern: str) -> str:
    flags, body = ("(?i)", pattern[4:]) if pattern.startswith("(?i)") else ("", pattern)
    if not body.startswith(r"\b"):
        return pattern
    body = body[2:]
    return f"{flags}{_LEAD}{body}" if "(?P<s>" in body else f"{flags}{_LEAD}(?P<s>{body})"
