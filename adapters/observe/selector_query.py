"""The little of PromQL that recorded metrics understand: a name, and labels that are equal."""

import json
import re
from typing import Final

from tools.errors import InvalidArguments

_SELECTOR: Final = re.compile(
    r'\s*([a-zA-Z_:][\w:.]*)\s*(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s*'
)
_EQUAL: Final = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*")\s*(?:,|$)')


def name_and_labels(text: str) -> tuple[str, dict[str, str]]:
    """Raises InvalidArguments for anything else."""
    found = _SELECTOR.fullmatch(text)
    labels, at = {}, 0
    while found is not None and found[2] and at < len(found[2]):
        one = _EQUAL.match(found[2], at)
        if one is None:
            found = None
            break
        labels[one[1]] = str(json.loads(one[2]))
        at = one.end()
    if found is None:
        raise InvalidArguments(
            'query: recorded data understand a selector alone, such as name{service="checkout"}; '
            "for the rest, ask for one metric of a product"
        )
    return found[1], labels
