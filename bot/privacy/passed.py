"""Digests of texts without findings: none of them is searched twice.

Most text was redacted before: on its way in, out, and into the audit log; with each edit of an answer;
with each round of a turn.
"""

import hashlib
from threading import Lock
from typing import Final

# Some forty different texts a turn, of the turns that run at once: half a megabyte.
REMEMBERED: Final = 4096
_DIGEST_BYTES: Final = 16


class PassedTexts:
    """The last texts that passed. Safe to share between threads; holds no text."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._digests: dict[bytes, None] = {}
        self._lock = Lock()

    def digest(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST_BYTES).digest()

    def knows(self, digest: bytes) -> bool:
        with self._lock:
            if digest not in self._digests:
                return False
            del self._digests[digest]
            self._digests[digest] = None  # the oldest is forgotten first
            return True

    def add(self, digest: bytes) -> None:
        """Remember it in place of the one met longest ago."""
        with self._lock:
            self._digests[digest] = None
            if len(self._digests) > REMEMBERED:
                del self._digests[next(iter(self._digests))]
