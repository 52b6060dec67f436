"""The position in a newest-first reading of logs.

A cursor freezes the interval of its first page, so that "last 30m" does not slide from page to
page, and remembers the lines delivered at its last timestamp, so that lines sharing it are neither
lost nor repeated. Sealing it against a model that edits it is the codec's work.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from adapters.observe.instants import check_order, to_ns
from tools.capabilities import LogQuery
from tools.errors import InvalidArguments

MAX_LINES = 100  # a page, for any request
# Hashes of 8 characters that still fit `tools.cursor.MAX_CURSOR_CHARS` once sealed twice.
MAX_TIED = 500
_VERSION = 2
_HASH_CHARS = 8


class CursorCodec(Protocol):
    """Makes bytes an opaque string."""

    def seal(self, content: bytes) -> str: ...

    def open(self, sealed: str) -> bytes:
        """The content. Raises InvalidArguments when it was not sealed by us."""
        ...


class UnsealedCodec:
    """For callers that sign cursors themselves, as `tools.cursor` does for the log tool."""

    def seal(self, content: bytes) -> str:
        """URL-safe base64, not protected in any way."""
        return base64.urlsafe_b64encode(content).decode()

    def open(self, sealed: str) -> bytes:
        """Raises InvalidArguments when it is not base64."""
        try:
            return base64.b64decode(sealed.encode(), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidArguments("the cursor is damaged; ask again without it") from error


@dataclass(frozen=True, slots=True)
class Position:
    """Frozen [start_ns, end_ns); everything newer than `last_ns` is delivered, and at it `delivered`.

    `delivered` are hashes of the lines already given at `last_ns`. When these are too many for a
    cursor, `passed` is their number and `delivered` the last of them alone: the rest of the tie
    begins behind it. `total` are the matches counted on the first page, None when not counted.
    """

    start_ns: int
    end_ns: int
    last_ns: int | None = None
    delivered: tuple[str, ...] = ()
    total: int | None = None
    passed: int = 0

    @property
    def count(self) -> int:
        """How many lines at `last_ns` were delivered."""
        return self.passed or len(self.delivered)


def page_size(query: LogQuery) -> int:
    return max(1, min(query.limit, MAX_LINES))


def resume(query: LogQuery, codec: CursorCodec) -> Position:
    """Where to go on. Raises InvalidArguments for a cursor of another query or not of ours."""
    if not query.cursor:
        check_order(query.interval)
        return Position(to_ns(query.interval.start), to_ns(query.interval.end))
    try:
        version, fingerprint, start, end, last, tied, total, passed = json.loads(
            codec.open(query.cursor)
        )
        delivered = tuple(tied[at : at + _HASH_CHARS] for at in range(0, len(tied), _HASH_CHARS))
    except (ValueError, TypeError) as error:
        raise InvalidArguments("the cursor is not one of ours; ask again without it") from error
    if version != _VERSION or fingerprint != _fingerprint(query):
        raise InvalidArguments(
            "the cursor belongs to another query: repeat product, filter and level unchanged, "
            "or ask again without a cursor"
        )
    return Position(start, end, last, delivered, total, passed)


def advanced(position: Position, at_last: Sequence[tuple[int, str]], total: int | None) -> Position:
    """The position behind a page, given as timestamps and hashes. `total` as in Position."""
    last_ns = at_last[-1][0]
    here = tuple(known for ts_ns, known in at_last if ts_ns == last_ns)
    same = last_ns == position.last_ns
    count = len(here) + (position.count if same else 0)
    if count > MAX_TIED:
        return replace(position, last_ns=last_ns, delivered=here[-1:], total=total, passed=count)
    earlier = position.delivered if same else ()
    return replace(position, last_ns=last_ns, delivered=earlier + here, total=total, passed=0)


def suspend(query: LogQuery, position: Position, codec: CursorCodec) -> str:
    content = [
        _VERSION,
        _fingerprint(query),
        position.start_ns,
        position.end_ns,
        position.last_ns,
        "".join(position.delivered),
        position.total,
        position.passed,
    ]
    return codec.seal(json.dumps(content, separators=(",", ":")).encode())


def line_hash(*parts: str) -> str:
    """6 bytes that distinguish lines of one timestamp."""
    digest = hashlib.blake2b("\x00".join(parts).encode(), digest_size=6).digest()
    return base64.urlsafe_b64encode(digest).decode()


def _fingerprint(query: LogQuery) -> str:
    return line_hash(query.product, query.filter, query.min_level)
