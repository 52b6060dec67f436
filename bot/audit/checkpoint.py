"""A signed statement of how long the audit log is and where it ends, small enough for a chat message.

Kept where the database's owner cannot reach, it shows a cut tail and a rewritten audit log, which the
chain alone cannot.
"""

import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from bot.audit.chain import UNKEYED, AuditKeys, ChainRow

NOBODY = "-"  # who signs without a key
_LINE = re.compile(
    r"kortex-audit/1 size=(\d{1,18}) head=([0-9a-f]{64}) at=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) "
    r"by=([\w.-]+) sig=([0-9a-f]{64})",
    re.ASCII,
)


class AuditLogEnd(NamedTuple):
    """The last row, size and time of the last checkpoint made here, and the database's clock."""

    newest: ChainRow | None
    last: tuple[int, datetime] | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The audit log had `size` rows, the last with the MAC `head`."""

    size: int
    head: str
    at: str
    key_id: str
    signature: str

    @property
    def line(self) -> str:
        return f"{self.statement()} sig={self.signature}"

    def is_signed(self, keys: AuditKeys) -> bool:
        key = keys.for_checkpoints().get(self.key_id)
        return key is not None and hmac.compare_digest(
            self.signature, _signature(key, self.statement())
        )

    def statement(self) -> str:
        return f"kortex-audit/1 size={self.size} head={self.head} at={self.at} by={self.key_id or NOBODY}"


def sign(keys: AuditKeys, size: int, head: str, at: datetime) -> Checkpoint:
    """With the current key."""
    unsigned = Checkpoint(size, head, f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", keys.current, "")
    key = keys.for_checkpoints()[keys.current]
    signature = _signature(key, unsigned.statement())
    return Checkpoint(size, head, unsigned.at, keys.current, signature)


def checkpoints_in(text: str) -> list[Checkpoint]:
    """All that occur anywhere in a text: a file of them, a log, a copied chat message."""
    return [
        Checkpoint(int(size), head, at, UNKEYED if key_id == NOBODY else key_id, signature)
        for size, head, at, key_id, signature in _LINE.findall(text)
    ]


def _signature(key: bytes, statement: str) -> str:
    return hmac.digest(key, statement.encode(), "sha256").hex()
