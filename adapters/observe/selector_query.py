"""The little of PromQL that recorded metrics understand: a name, and labels that are equal."""

import json
import re
from typing import Final

from tools.errors import InvalidArguments

_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_SELECTOR: Final = re.compile(
    rf"\s*(?P<name>[a-zA-Z_:][\w:.]*)?\s*(?:\{{(?P<inside>(?:[^\"}}]|{_STRING})*)\}})?\s*"
)
# Prometheus 3 quotes names of other signs: `{"http.requests", "service.name"="web"}`.
_PART: Final = re.compile(
    rf"\s*(?P<label>[A-Za-z_][\w.]*|{_STRING})\s*(?:=\s*(?P<value>{_STRING})\s*)?(?:,|$)"
)


def name_and_labels(text: str) -> tuple[str, dict[str, str]]:
    """Raises InvalidArguments for anything else."""
    found = _SELECTOR.fullmatch(text)
    if found is None:
        raise _not_alone()
    name, inside = found["name"] or "", found["inside"] or ""
    labels: dict[str, str] = {}
    at = 0
    while inside[at:].strip():
        part = _PART.match(inside, at)
        if part is None:
            raise _not_alone()
        label, at = _unquoted(part["label"]), part.end()
        if part["value"] is not None:
            labels[label] = _unquoted(part["value"])
        elif not name and part["label"].startswith('"'):
            name = label
        else:
            raise _not_alone()
    name = name or labels.pop("__name__", "")
    if not name:
        raise _not_alone()
    return name, labels


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:
        raise _not_alone() from None


def _not_alone() -> InvalidArguments:
    return InvalidArguments(
        'query: recorded data accept only a selector, such as name{service="checkout"}; '
        "for the rest, ask for one metric of a product"
    )
