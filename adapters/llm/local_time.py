"""In which time zone somebody reads clocks: as it stands beside a question, and read back from there."""

import re
from typing import Final

_TOLD: Final = re.compile(r"^- The asker's time zone is ([A-Za-z0-9_+/-]{1,99})[.:]", re.MULTILINE)
_UNKNOWN: Final = "The asker's time zone is not known: take clock times as UTC, and say so."


def in_zone(zone: str) -> str:
    """A note; `zone` is the name of one, or empty."""
    return (
        f"The asker's time zone is {zone}: read clock times in it, and say so."
        if zone
        else _UNKNOWN
    )


def zone_in(told: str) -> str:
    """The zone's name, empty where it is not known."""
    found = _TOLD.search(told)
    return found[1] if found else ""
