"""What a server announces of a tool, its hash, and what the operator's entry makes of it. Pure.

Nothing that a server says of itself grants anything; that it writes is believed (`adapters.mcp.effect`).
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from adapters.mcp.effect import Guess, SeemingEffect, seeming_effect
from tools.output import clean_text, lines_of
from tools.policy import MCP_PREFIX

MAX_BYTES: Final = 16 * 1024  # of a definition: every request to a model carries it
_NOT_IN_IDS: Final = re.compile(r"[^a-z0-9_]")
_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,64}")  # what the protocol's 2025-11-25 asks of names
_NO_ENTRY: Final = "not in kortex.toml"
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class ToolState(StrEnum):
    """Whether a tool may be called, and why not. Only `ON` is seen by a model."""

    ON = "on"
    NEW = "new"  # no entry: off
    CHANGED = "changed"  # differs from the accepted definition: off
    REFUSED = "refused"  # cannot be offered, regardless of the entry
    GONE = "gone"  # accepted, and no longer announced


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as its server announces it: everything that a model sees and that is hashed."""

    name: str
    description: str
    schema: Mapping[str, JsonValue]
    says_it_writes: bool = False  # its annotations; no part of the hash, for they only narrow

    def canonical(self) -> str:
        """One text for one meaning, however the server orders its keys. Raises ValueError for NaN."""
        parts = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        return json.dumps(
            parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
        )

    def sha256(self) -> str:
        """What the operator accepts, in hexadecimal."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def seeming_effect(self) -> SeemingEffect:
        """Whether it reads or writes, as far as that can be guessed."""
        return seeming_effect(
            self.name, self.description, self.schema, says_it_writes=self.says_it_writes
        )

    def lines(self) -> list[str]:
        """For people: free of terminal controls, a line per key."""
        schema = json.dumps(self.schema, sort_keys=True, indent=1, ensure_ascii=False)
        text = f"name: {self.name}\ndescription: {self.description}\nschema: {schema}"
        return lines_of(clean_text(text))


@dataclass(frozen=True, slots=True)
class Accepted:
    """The operator's entry for a tool."""

    sha256: str
    reads: bool  # the operator's word; what only reads may be called
    because: str = ""  # why it reads although it looks as if it wrote


@dataclass(frozen=True, slots=True)
class Judged:
    """A tool by the operator's entries. `definition` None: it is no longer announced."""

    name: str
    state: ToolState
    reason: str
    definition: Definition | None = None
    accepted: Accepted | None = None


def tool_id(server: str, tool: str) -> str:
    """`mcp__SERVER__TOOL`, in the characters that ids may have: `getSum-2` is `getsum_2`."""
    return f"{MCP_PREFIX}{server}__{_NOT_IN_IDS.sub('_', tool.lower())}"


def judged(announced: Sequence[Definition], accepted: Mapping[str, Accepted]) -> tuple[Judged, ...]:
    """Every tool that is announced or has an entry, by name. Two of one name are both refused."""
    names = [each.name for each in announced]
    found = [
        _verdict(each, accepted.get(each.name), twice=names.count(each.name) > 1)
        for each in announced
    ]
    gone = [
        Judged(name, ToolState.GONE, "the server no longer announces it", None, entry)
        for name, entry in accepted.items()
        if name not in names
    ]
    return tuple(sorted((*found, *gone), key=lambda each: each.name))


def _verdict(definition: Definition, entry: Accepted | None, *, twice: bool) -> Judged:
    unfit = _unfit(definition, twice=twice)
    state, reason = (ToolState.REFUSED, unfit) if unfit else _admitted(definition, entry)
    return Judged(definition.name, state, reason, definition, entry)


def _unfit(definition: Definition, *, twice: bool) -> str:
    if _NAME.fullmatch(definition.name) is None:
        return f"its name is not {_NAME.pattern}"
    if twice:
        return "announced twice"
    try:
        size = len(definition.canonical())
    except ValueError:
        return "its schema is not JSON"
    if size > MAX_BYTES:
        return f"its definition is larger than {MAX_BYTES} bytes"
    return _looks(definition) if definition.says_it_writes else ""


def _admitted(definition: Definition, entry: Accepted | None) -> tuple[ToolState, str]:
    writes = definition.seeming_effect().guess is Guess.WRITES
    if entry is None:
        return (ToolState.REFUSED, _looks(definition)) if writes else (ToolState.NEW, _NO_ENTRY)
    if entry.sha256 != definition.sha256():
        return ToolState.CHANGED, "not what was accepted"
    if not entry.reads:
        return ToolState.REFUSED, "its effect is not read; a model may only read"
    if writes and not entry.because:
        say = 'If it only reads, say why: because = "..."'
        return ToolState.REFUSED, f"{_looks(definition)}. {say}"
    return ToolState.ON, ""


def _looks(definition: Definition) -> str:
    return f"it looks as if it changes something: {definition.seeming_effect().because}"


def entry_line(definition: Definition) -> str:
    """The line that accepts it, for `[mcp.servers.NAME.tools]`; to be completed where it is unclear."""
    name = definition.name
    key = name if _BARE_KEY.fullmatch(name) else json.dumps(name)
    reads = definition.seeming_effect().guess is Guess.READS
    effect = '"read"' if reads else '""'
    return f'{key} = {{ sha256 = "{definition.sha256()}", effect = {effect} }}'


def difference(before: Definition, now: Definition) -> list[str]:
    """What changed, as a unified diff without its head."""
    return list(unified_diff(before.lines(), now.lines(), lineterm="", n=2))[2:]
