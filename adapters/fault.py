"""The kind of network fault behind an error, which decides the remedy.

Found by the error and its cause, never by its message.
"""

import errno
import socket
import ssl
from collections.abc import Iterator
from enum import Enum

from adapters.errors import Overloaded, RateLimited, TimedOut, Unreachable


class Fault(Enum):
    """The more exact come first."""

    NAME = "the host's name leads nowhere"
    TLS = "no encrypted connection came about"
    CLOSED = "nothing listens at that port"
    LIMIT = "429, or Slack's word for it"
    CREDENTIAL = "401, or a password that PostgreSQL does not take"
    RIGHT = "403"
    ABSENT = "404, 410, or no such database"
    SILENT = "no answer in time"
    BROKEN = "5xx"
    CUT = "no way there, or the connection broke off"


# https://www.postgresql.org/docs/current/errcodes-appendix.html
_SQLSTATES = {
    "28000": Fault.CREDENTIAL,
    "28P01": Fault.CREDENTIAL,
    "3D000": Fault.ABSENT,
    "42501": Fault.RIGHT,
    "53300": Fault.BROKEN,  # too many connections
    "57P03": Fault.BROKEN,  # it starts or stops
}
_NUMBERS = {
    errno.ECONNREFUSED: Fault.CLOSED,
    errno.EHOSTUNREACH: Fault.CUT,
    errno.ENETUNREACH: Fault.CUT,
}
# A special kind before the general kinds that include it.
_KINDS: tuple[tuple[type[BaseException], Fault], ...] = (
    (socket.gaierror, Fault.NAME),
    (ssl.SSLError, Fault.TLS),
    (RateLimited, Fault.LIMIT),
    (TimeoutError, Fault.SILENT),
    (TimedOut, Fault.SILENT),
    (Overloaded, Fault.BROKEN),
    (ConnectionError, Fault.CUT),
    (Unreachable, Fault.CUT),
)
_ORDER = tuple(Fault)


def fault_of(error: BaseException) -> Fault | None:
    """None for an error of another kind, such as a request that the other side does not take."""
    found = {_one(each) for each in _chain(error)} - {None}
    return next((fault for fault in _ORDER if fault in found), None)


def fault_of_status(status: int | None) -> Fault | None:
    """What an HTTP status says by itself."""
    match status:
        case 401:
            return Fault.CREDENTIAL
        case 403:
            return Fault.RIGHT
        case 404 | 410:
            return Fault.ABSENT
        case 408 | 504:
            return Fault.SILENT
        case 429:
            return Fault.LIMIT
        case int() if status >= 500:
            return Fault.BROKEN
        case _:
            return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, getattr(each, "orig", None)]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _one(error: BaseException) -> Fault | None:
    status = getattr(error, "status", None)
    told = fault_of_status(status) if isinstance(status, int) else None
    if told is None and isinstance(error, OSError) and error.errno is not None:
        told = _NUMBERS.get(error.errno)
    if told is None:
        told = next((fault for kind, fault in _KINDS if isinstance(error, kind)), None)
    return told or _SQLSTATES.get(str(getattr(error, "sqlstate", "")))
