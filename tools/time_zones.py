"""Time zones by their IANA names, and clocks read in them."""

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

# As in the database: https://data.iana.org/time-zones/theory.html#naming
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,31}){0,2}")


def is_zone(name: str) -> bool:
    return _found(name) is not None


def zone_of(name: str) -> tzinfo:
    return _found(name) or UTC


@lru_cache(maxsize=512)
def _found(name: str) -> tzinfo | None:
    if name == "UTC":
        return UTC  # known without a file, which nothing may read while the event loop runs
    if not _NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # no such zone, a folder, or an invalid file
        return None


def in_utc(wall: datetime) -> tuple[datetime, datetime]:
    """The first and the last instant at which a clock shows this time.

    They differ in the hour that comes twice. A time that a clock skips is what it would have shown.
    """
    return wall.replace(fold=0).astimezone(UTC), wall.replace(fold=1).astimezone(UTC)
