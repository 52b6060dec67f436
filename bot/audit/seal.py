"""A seal: a row with which a holder of the key accepts all rows before it as they were then.

It lets an audit log continue that began without a key, or that was found broken: `audit.sealed`, whose
`prev` is a digest of every earlier row in place of the last MAC. It does not prove those rows, only
that they are unchanged since.
"""

from collections.abc import Sequence
from hashlib import sha256

import orjson

from bot.audit.chain import UNKEYED, AuditKeys, ChainRow, hash_of_content, mac_of
from bot.domain.audit import AuditKind

EMPTY = ("", "", "")  # actor, salt and body of an erased row


class Digest:
    """A hash over rows in order, which erasing the content of a sealed row does not change."""

    def __init__(self) -> None:
        self._so_far = b""
        self._tip: str | None = None  # of the last row: the seal takes it, so it is not hashed yet

    def add(self, row: ChainRow) -> None:
        """Add a row, with any values in its columns."""
        fields = (row.seq, row.at_us, row.kind, row.session_id, row.key, row.prev, row.mac)
        text = repr((self._tip, *fields, row.key_id, _content(row)))
        self._so_far = sha256(self._so_far + text.encode("utf-8", "surrogatepass")).digest()
        self._tip = row.tip

    def hex(self) -> str:
        return self._so_far.hex()


def is_genuine(row: ChainRow, keys: AuditKeys) -> bool:
    """Whether a holder of one of the known keys made this seal."""
    key = keys.for_rows().get(row.key_id)
    try:
        return (
            key is not None
            and row.key_id != UNKEYED
            and row.kind == AuditKind.AUDIT_SEALED
            and row.erased_by is None
            and row.mac == mac_of(key, row)
            and row.body_hash == hash_of_content(row.salt, row.actor, row.body)
        )
    except (TypeError, ValueError, AttributeError):  # a column holds another type
        return False


def newest_genuine(rows: Sequence[ChainRow], keys: AuditKeys) -> ChainRow | None:
    """The last seal that holds; an invented one is no seal, and an ordinary bad row."""
    return max((row for row in rows if is_genuine(row, keys)), default=None)


def seal_body(seal: ChainRow) -> dict[str, object]:
    """What the seal's body says."""
    body: dict[str, object] = orjson.loads(seal.body)
    return body


def _content(row: ChainRow) -> object:
    if row.erased_by is not None and (row.actor, row.salt, row.body) == EMPTY:
        return row.body_hash
    try:
        found = hash_of_content(row.salt or "", row.actor, row.body)
    except TypeError:
        return (row.salt, row.actor, row.body, row.body_hash)
    return found if found == row.body_hash else (found, row.salt, row.body_hash)
