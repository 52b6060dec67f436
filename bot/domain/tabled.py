"""Results that are rows as tables, to be sorted by people: only what the result itself holds."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson
from pydantic import JsonValue

from bot.domain.turn_events import Evidence

Cell = str | float
Fields = Mapping[str, JsonValue]

MOST_ROWS: Final = 100
MOST_COLUMNS: Final = 8
# Day and minute, which sort as text.
_STAMP: Final = re.compile(r"\d{4}-(\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d{1,9})?)?(?:Z|\+00:00)")

# The rows of each tool's result, and their shown fields with their headings.
TOLD: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "core__error_patterns": (
        "changes",
        {"product": "product", "example": "example", "before": "before", "after": "after",
         "since": "since", "level": "level", "change": "change"},
    ),
    "core__get_recent_deploys": (
        "deploys",
        {"ts": "at", "product": "product", "version": "version", "previous_version": "before",
         "actor": "by", "status": "status", "duration_s": "took, s"},
    ),
    "core__kubectl_events": (
        "events",
        {"ts": "at", "object": "object", "type": "type", "reason": "reason", "message": "message"},
    ),
    "core__get_incident_history": (
        "incidents",
        {"opened_at": "opened", "title": "title", "product": "product", "severity": "severity"},
    ),
    "core__sweep_metrics": (
        "shifts",
        {"product": "product", "signal": "signal", "usual": "usual", "worst": "worst",
         "last": "newest", "unit": "unit", "since": "since", "score": "spreads"},
    ),
    "core__sweep_traces": (
        "shifts",
        {"product": "product", "operation": "operation", "what": "change", "callee": "calls",
         "before": "before", "after": "after", "n": "traces"},
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    evidence: int
    tool: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table_of(evidence: Evidence) -> Table | None:
    """None where the result holds no rows."""
    try:
        fields = orjson.loads(evidence.content)
    except orjson.JSONDecodeError:
        return None
    if not evidence.ok or not isinstance(fields, dict):
        return None
    if evidence.tool == "core__kubectl_get":
        return _listed(evidence, fields)
    if evidence.tool not in TOLD:
        return None
    key, names = TOLD[evidence.tool]
    held = fields.get(key)
    rows = [row for row in held if isinstance(row, dict)] if isinstance(held, list) else []
    told = {name: head for name, head in names.items() if any(_is_told(row, name) for row in rows)}
    return _table(evidence, list(told.values()), [[row.get(name) for name in told] for row in rows])


def _listed(evidence: Evidence, fields: Fields) -> Table | None:
    heads, rows = fields.get("columns"), fields.get("rows")
    if not isinstance(heads, list) or not isinstance(rows, list):
        return None
    wide = [row for row in rows if isinstance(row, list) and len(row) == len(heads)]
    return _table(evidence, [str(head) for head in heads], wide)


def _table(
    evidence: Evidence, heads: Sequence[str], rows: Sequence[Sequence[JsonValue]]
) -> Table | None:
    heads = heads[:MOST_COLUMNS]
    made = tuple(tuple(map(_cell, row[: len(heads)])) for row in rows[:MOST_ROWS])
    return Table(evidence.number, evidence.tool, tuple(heads), made) if heads and made else None


def _is_told(row: Fields, name: str) -> bool:
    return row.get(name) not in (None, "")


def _cell(value: JsonValue) -> Cell:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else ""
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    at = _STAMP.fullmatch(value)
    return f"{at[1]} {at[2]}" if at else _message(value)


def _message(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    said = [fields[name] for name in ("msg", "message", "error") if fields.get(name)]
    return ": ".join(str(each) for each in said) or text
