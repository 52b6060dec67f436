"""Does the chain hold? A fold over the rows in order; the first bad row is named. No I/O."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

import orjson

from bot.audit.chain import GENESIS, UNKEYED, AuditKeys, ChainRow, hash_of_content, mac_of
from bot.audit.checkpoint import Checkpoint
from bot.domain.audit import AuditKind

_BLOCK_BYTES = 64  # of SHA-256
_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bad:
    """Where the chain breaks first, and how."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What was seen. `unsealed` rows are older than the chain, `unkeyed` ones have no key."""

    rows: int
    head: str
    bad: Bad | None
    erased: int
    unsealed: int
    unkeyed: int


class Verifier:
    """Takes all rows in the order of their numbers; judges them by content and by neighbours."""

    def __init__(self, keys: AuditKeys, watched: Iterable[int] = ()) -> None:
        """`watched` are the sizes whose head is wanted afterwards, for checkpoints."""
        self._all_keys = keys
        self._keys = keys.for_rows()
        self._must_be_keyed = keys.keyed
        self._watched = frozenset(watched)
        self._heads: dict[int, str] = {}
        self._seq = 0
        self._head = GENESIS
        self._key_id = UNKEYED
        self._inner = self._outer = b""
        self._bad: Bad | None = None
        self._erased: dict[int, int] = {}  # row to the row that says so, until that one is read
        self._count_erased = 0
        self._unsealed = 0
        self._unkeyed = 0

    def feed(self, rows: Iterable[ChainRow]) -> bool:
        """Go on with these; False when a bad row was found and no more is worth reading.

        A row is a tuple in the order of ChainRow's fields.
        """
        for row in rows:
            if self._holds(row):
                continue
            whole = ChainRow._make(row)
            try:
                reason = self._judge(whole)
            except (TypeError, ValueError, AttributeError):  # a column holds another type
                reason = "a column holds what was never written"
            if reason:
                seq = whole.seq if isinstance(whole.seq, int) else self._seq + 1
                self._bad = Bad(seq, reason)
                return False
        return True

    def _holds(self, row: ChainRow) -> bool:
        """The ordinary row, at once: a trail has millions. Whatever else it is, `_judge` says."""
        seq, at_us, kind, session, key, actor, salt, body, body_hash, prev, mac, key_id, erased = (
            row
        )
        if (
            seq != self._seq + 1
            or prev != self._head
            or key_id != self._key_id
            or erased is not None
            or kind == AuditKind.AUDIT_ERASED
            or not self._inner
        ):
            return False
        try:
            content = "\0".join((salt, actor, body)).encode()
            event = "-" if key is None else "+" + key
            text = "\0".join((str(seq), prev, body_hash, str(at_us), kind, session, key_id, event))
        except (TypeError, UnicodeEncodeError):
            return False
        # HMAC by its definition (RFC 2104), with the key's pads made once: half of hmac.digest's
        # time is looking the algorithm up.
        inner = sha256(self._inner + text.encode()).digest()
        if (
            sha256(self._outer + inner).hexdigest() != mac
            or sha256(content).hexdigest() != body_hash
        ):
            return False
        self._seq, self._head = seq, mac
        self._unkeyed += key_id == UNKEYED
        if seq in self._watched:
            self._heads[seq] = mac
        return True

    def _use(self, key_id: str) -> None:
        """The key of the last row is probably that of the next."""
        self._key_id = key_id
        key = self._keys[key_id].ljust(_BLOCK_BYTES, b"\0")
        self._inner = bytes(byte ^ 0x36 for byte in key)
        self._outer = bytes(byte ^ 0x5C for byte in key)

    def finish(self, checkpoints: Iterable[Checkpoint] = ()) -> Summary:
        """The verdict on all that was fed, held against checkpoints of watched sizes."""
        return Summary(
            self._seq,
            self._head,
            self._bad or self._left_open() or self._contradicted(checkpoints),
            self._count_erased,
            self._unsealed,
            self._unkeyed,
        )

    def _left_open(self) -> Bad | None:
        if self._erased:
            seq, by = min(self._erased.items())
            return Bad(seq, f"its content is gone, and no row {by} says that it was erased")
        if self._must_be_keyed and self._unkeyed and self._key_id == UNKEYED:
            first = self._unsealed + 1
            return Bad(first, "chained without a key although one is configured")
        return None

    def _contradicted(self, checkpoints: Iterable[Checkpoint]) -> Bad | None:
        for each in sorted(checkpoints, key=lambda c: c.size):
            if not each.is_signed(self._all_keys):
                return Bad(each.size, f"the checkpoint of {each.at} was not signed by a known key")
            if each.size > self._seq:
                return Bad(
                    self._seq + 1,
                    f"the tail was cut: the checkpoint of {each.at} has {each.size} rows",
                )
            if self._heads.get(each.size) != each.head:
                return Bad(
                    each.size, f"it or a row before was rewritten since the checkpoint of {each.at}"
                )
        return None

    def _judge(self, row: ChainRow) -> str:
        if row.seq != self._seq + 1:
            return self._misplaced(row.seq)
        if _is_unsealed(row) and self._seq == self._unsealed:
            self._unsealed = self._seq = row.seq  # from before the chain
            return ""
        reason = self._unlinked(row) or self._wrong_content(row)
        if reason:
            return reason
        self._seq, self._head = row.seq, row.mac
        if row.key_id != self._key_id or not self._inner:
            self._use(row.key_id)
        if row.key_id == UNKEYED:
            self._unkeyed += 1
        if row.seq in self._watched:
            self._heads[row.seq] = row.mac
        return ""

    def _misplaced(self, seq: int) -> str:
        if seq <= self._seq:
            return f"its number was used before: {self._seq} is the last"
        return f"rows {self._seq + 1} to {seq - 1} are missing before it"

    def _unlinked(self, row: ChainRow) -> str:
        if row.prev != self._head:
            return "it does not follow the row before it"
        if row.key_id == UNKEYED and self._key_id != UNKEYED:
            return "chained without a key after rows that have one"
        key = self._keys.get(row.key_id)
        if key is None:
            return f"its key {row.key_id!r} is not configured; name it in [audit] old_keys"
        if row.mac != mac_of(key, row):
            return "it was changed: its MAC does not fit"
        return ""

    def _wrong_content(self, row: ChainRow) -> str:
        if row.erased_by is None:
            if row.body_hash != hash_of_content(row.salt, row.actor, row.body):
                return "its actor or body was changed"
            if row.kind == AuditKind.AUDIT_ERASED and self._erased:
                self._resolve(row)
            return ""
        if row.kind == AuditKind.AUDIT_ERASED or row.salt or row.actor or row.body:
            return "its content was changed under the pretext of an erasure"
        if row.erased_by <= row.seq:
            return "its content is gone, and the row that should say so is older"
        self._erased[row.seq] = row.erased_by
        self._count_erased += 1
        return ""

    def _resolve(self, row: ChainRow) -> None:
        for seq in erased_rows(orjson.loads(row.body)):
            if self._erased.get(seq) == row.seq:
                del self._erased[seq]


def _is_unsealed(row: ChainRow) -> bool:
    """Whether it was written before there was a chain."""
    sealed: tuple[object, ...] = (row.prev, row.mac, row.key_id, row.body_hash, row.erased_by)
    return all(value is None for value in sealed)


def as_ranges(seqs: Iterable[int]) -> str:
    """`3-5,9-9`: numbers in ascending order, as `erased_rows` reads them."""
    found: list[list[int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1][1] = seq
        else:
            found.append([seq, seq])
    return ",".join(f"{first}-{last}" for first, last in found)


def erased_rows(body: Mapping[str, object]) -> Iterable[int]:
    """The rows that an `audit.erased` row names."""
    for first, last in _RANGE.findall(str(body.get("rows", ""))):
        yield from range(int(first), int(last) + 1)
