"""The chain of the audit log's rows: keys, hashes, MACs. The store writes them.

body_hash = SHA-256(salt, actor, body) mac = HMAC-SHA-256(key, seq, previous mac, body_hash, at,
kind, session, key id, event key) tip = HMAC-SHA-256(another key, seq, mac), on the newest row only;
the next row takes it away

Erasable fields (actor, body) enter as a salted hash only, so a row whose content is gone still
proves its place. No field holds a NUL, which separates them unambiguously.

A chain alone does not show that its end was cut off, because the rest is a chain too. The tip does:
no key, no tip for an older row.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

GENESIS = "0" * 64
UNKEYED = ""  # the key id of rows that were chained without a key
SALT_BYTES = 16  # so that the hash of a short erased body cannot be guessed by trying all of them
# By the edition of the row. Rows of the first edition were never given a tip.
_ROWS = {1: b"kortex audit row 1", 2: b"kortex audit row 2"}
EDITION = max(_ROWS)
_TIPS = b"kortex audit tip 1"
_CHECKPOINTS = b"kortex audit checkpoint 1"


class ChainRow(NamedTuple):
    """One row of the audit log as it is stored. `at_us` is microseconds since the epoch."""

    seq: int
    at_us: int
    kind: str
    session_id: str
    key: str | None
    actor: str
    salt: str
    body: str
    body_hash: str
    prev: str
    mac: str
    key_id: str
    erased_by: int | None = None
    tip: str | None = None


@dataclass(frozen=True, slots=True)
class AuditKeys:
    """The key that seals new rows, and older ones that are still recognised. Bytes by key id."""

    current: str = UNKEYED
    known: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def keyed(self) -> bool:
        """Whether forging a row takes more than write access to the database."""
        return self.current != UNKEYED

    def for_rows(self, edition: int = EDITION) -> dict[str, bytes]:
        """The MAC key of rows by key id, the unkeyed one among them."""
        return self._all_for(_ROWS[edition])

    def for_tips(self) -> dict[str, bytes]:
        return self._all_for(_TIPS)

    def for_checkpoints(self) -> dict[str, bytes]:
        return self._all_for(_CHECKPOINTS)

    def _all_for(self, purpose: bytes) -> dict[str, bytes]:
        everything = {UNKEYED: b"", **self.known}
        return {name: _derived(key, purpose) for name, key in everything.items()}


def hash_of_content(salt: str, actor: str, body: str) -> str:
    """The commitment to what may be erased."""
    return hashlib.sha256("\0".join((salt, actor, body)).encode()).hexdigest()


def mac_of(key: bytes, row: ChainRow) -> str:
    """The MAC that a row ought to have, given its other columns."""
    fields = (
        str(row.seq),
        row.prev,
        row.body_hash,
        str(row.at_us),
        row.kind,
        row.session_id,
        row.key_id,
        "-" if row.key is None else f"+{row.key}",
    )
    return hmac.digest(key, "\0".join(fields).encode(), "sha256").hex()


def tip_of(key: bytes, seq: int, mac: str) -> str:
    """What the newest row carries."""
    return hmac.digest(key, f"{seq}\0{mac}".encode(), "sha256").hex()


def is_unsealed(row: ChainRow) -> bool:
    """Whether nothing proves it: it was written before there was a chain, or was robbed of its seal."""
    return not any((row.prev, row.mac, row.key_id, row.body_hash, row.erased_by))


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, purpose, "sha256")
