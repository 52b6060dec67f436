"""The asker's time zone, written as a note beside a question and parsed from there."""

import re
from typing import Final

_TOLD: Final = re.compile(r"^- The asker's time zone is ([A-Za-z0-9_+/-]{1,99})[.:]", re.MULTILINE)
_UNKNOWN: Final = "The asker's time zone is not known: take clock times as UTC, and say so."


def in_zone(zone: str) -> str:
    """The note; `zone` is a zone's name, or empty."""
    return (
        f"The asker's time zone is {zone}: read clock times in it, and say so."
        if zone
        else _UNKNOWN
    )


def zone_in(told: str) -> str:
    found = _TOLD.search(told)
    return found[1] if found else ""
