"""How an answer names its evidence: `[E1]`, or `[E1, E2]`. Shared by who checks and who shows it."""

import re

CITATION = re.compile(r"\[E\d{1,4}(?:\s*,\s*E\d{1,4})*\]", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)


def cited(text: str) -> tuple[int, ...]:
    """The numbers a text cites, each once, in the order of their first mention."""
    found = (int(n) for each in CITATION.findall(text) for n in _NUMBER.findall(each))
    return tuple(dict.fromkeys(found))
