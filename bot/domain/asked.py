"""What a result was asked for: its query, its window, and where people find it in their own tools."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlsplit

import orjson
from pydantic import JsonValue

from bot.domain.charted import instant
from bot.domain.link_template import template_fields
from bot.domain.turn_events import Evidence

Fields = Mapping[str, JsonValue]
Window = tuple[datetime, datetime]

# Which tools read which family of signals, by the names of the tables of settings.
_FAMILIES: Final[Mapping[str, str]] = {
    "core__compare_to_baseline": "metrics",
    "core__get_metrics": "metrics",
    "core__query_metrics": "metrics",
    "core__sweep_metrics": "metrics",
    "core__error_patterns": "logs",
    "core__get_logs": "logs",
    "core__get_traces": "traces",
    "core__search_traces": "traces",
    "core__sweep_traces": "traces",
}


def window_of(evidence: Evidence) -> Window | None:
    """The time that the result itself says it is about."""
    try:
        fields = orjson.loads(evidence.content)
    except orjson.JSONDecodeError:
        return None
    told = fields.get("range") if isinstance(fields, dict) else None
    start, _, end = told.partition("/") if isinstance(told, str) else ("", "", "")
    first, last = instant(start), instant(end)
    return (first, last) if first and last else None


def query_of(arguments: Fields) -> str:
    """A query in its own language, else the arguments, a line each: `product: checkout`."""
    lines = [
        f"{name}: {value if isinstance(value, str) else orjson.dumps(value).decode()}"
        for name, value in arguments.items()
        if value not in (None, "", {}, []) and name != "query"
    ]
    query = arguments.get("query")
    return "\n".join([*([query] if isinstance(query, str) and query else []), *lines])


def link_of(evidence: Evidence, arguments: Fields, templates: Mapping[str, str]) -> str:
    """The address by the template of the result's family; "" without one, or if a field is missing.

    The host is always the template's, for any values.
    """
    template = templates.get(_FAMILIES.get(evidence.tool, ""), "")
    if not template:
        return ""
    window = window_of(evidence)
    metric = _text(arguments, "metric_name")
    values = {
        "product": _text(arguments, "product").replace("*", ""),
        "metric": metric,
        "query": _text(arguments, "query") or metric,
        "trace_id": _text(arguments, "trace_id"),
        "from_ms": _ms(window[0]) if window else "",
        "to_ms": _ms(window[1]) if window else "",
    }
    wanted = template_fields(template)
    if not wanted <= {name for name, value in values.items() if value}:
        return ""
    made = template.format(**{name: quote(value, safe="") for name, value in values.items()})
    return made if urlsplit(made).netloc == urlsplit(template).netloc else ""


def _ms(at: datetime) -> str:
    return str(round(at.timestamp() * 1000))


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
