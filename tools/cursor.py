"""Opaque page cursors: signed, bound to the tool, its query and the session, and short-lived.

A model may edit a cursor. One that was changed, replayed in another session or used with another
query is refused, so it can never lead to another session's page.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
from pydantic import JsonValue

from tools.errors import InvalidArguments

MAX_AGE = timedelta(hours=24)
MAX_CURSOR_CHARS = 8192
MIN_KEY_BYTES = 16
_MAC_BYTES = 16
_REFUSED = "cursor: not valid for this query; leave it out to start from the first page"


@dataclass(frozen=True, slots=True)
class CursorScope:
    """The scope of a cursor. `query` holds every argument that selects the list."""

    tool: str
    session_id: str
    query: Mapping[str, JsonValue]

    def digest_input(self) -> bytes:
        """The same bytes for the same scope, for any order of `query`."""
        scope = [self.tool, self.session_id, dict(self.query)]
        return orjson.dumps(scope, option=orjson.OPT_SORT_KEYS)


class CursorSigner:
    """Seals and opens cursors. Replicas must share `key`, at least 16 bytes."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise ValueError("cursor key shorter than 16 bytes")
        self._key = key

    def seal(self, position: Mapping[str, JsonValue], scope: CursorScope, now: datetime) -> str:
        """An opaque, URL-safe text that leads back to `position`."""
        expires_s = int((now + MAX_AGE).timestamp())
        payload = orjson.dumps([expires_s, dict(position)])
        return base64.urlsafe_b64encode(self._mac(payload, scope) + payload).decode().rstrip("=")

    def open(self, cursor: str, scope: CursorScope, now: datetime) -> dict[str, JsonValue]:
        """The position sealed in. Raises InvalidArguments when it is not ours, or too old."""
        blob = _decoded(cursor)
        mac, payload = blob[:_MAC_BYTES], blob[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload, scope)):
            raise InvalidArguments(_REFUSED)
        expires_s, position = orjson.loads(payload)
        if now.timestamp() >= expires_s:
            raise InvalidArguments("cursor: too old; leave it out to start from the first page")
        if not isinstance(position, dict):
            raise InvalidArguments(_REFUSED)
        return position

    def _mac(self, payload: bytes, scope: CursorScope) -> bytes:
        query = hashlib.sha256(scope.digest_input()).digest()
        return hmac.digest(self._key, query + payload, "sha256")[:_MAC_BYTES]


def _decoded(cursor: str) -> bytes:
    """The bytes, only for the one spelling `seal` writes: base64 has several for the same bytes."""
    if len(cursor) > MAX_CURSOR_CHARS or not cursor.isascii():
        raise InvalidArguments(_REFUSED)
    try:
        blob = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArguments(_REFUSED) from None
    if base64.urlsafe_b64encode(blob).decode().rstrip("=") != cursor:
        raise InvalidArguments(_REFUSED)
    return blob
