"""Instants and minutes of the clock in a text."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

STAMP = re.compile(r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(r"(?<![\d:.T-])([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?(?![\d:])")


def instants(text: str) -> Iterator[datetime]:
    """Each stamp of it, in UTC; one without a zone is taken as UTC."""
    for match in STAMP.finditer(text):
        try:
            at = datetime.fromisoformat(match[0].replace(" ", "T", 1))
        except ValueError:
            continue
        yield at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def clock(at: datetime) -> str:
    """The minute, HH:MM."""
    return f"{at:%H:%M}"


def clocks_in(text: str) -> frozenset[str]:
    """The minutes of a text without stamps, HH:MM."""
    return frozenset(f"{int(m[1]):02d}:{m[2]}" for m in _CLOCK.finditer(text))
