"""The addresses that operators give for opened results: text with fields in braces."""

import string
from typing import Final

# What a link's template may hold; each is filled in percent-encoded.
LINK_FIELDS: Final = frozenset({"product", "metric", "query", "trace_id", "from_ms", "to_ms"})


def template_fields(template: str) -> frozenset[str]:
    """The fields that a template names. Raises ValueError for one that cannot be filled in."""
    parsed = list(string.Formatter().parse(template))
    if any(spec or conversion for _, _, spec, conversion in parsed):
        raise ValueError("a field is a name in braces and nothing else")
    return frozenset(name for _, name, _, _ in parsed if name is not None)
