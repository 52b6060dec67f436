"""Does the chain hold? A fold over the rows in order; the first bad row is named. No I/O."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

import orjson

from bot.audit.chain import (
    EDITION,
    GENESIS,
    UNKEYED,
    AuditKeys,
    ChainRow,
    hash_of_content,
    is_unsealed,
    mac_of,
    tip_of,
)
from bot.audit.checkpoint import Checkpoint
from bot.audit.seal import EMPTY, Digest, seal_body
from bot.domain.audit import AuditKind

_BLOCK_BYTES = 64  # of SHA-256
_ORDINARY = [None, None]  # neither erased nor the newest
_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bad:
    """Where the chain breaks first, and how."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts. `unsealed` rows are older than the chain, `unkeyed` ones have no key.

    `sealed` rows were accepted by the seal after them; no other count includes them.
    """

    rows: int
    head: str
    bad: Bad | None
    erased: int
    unsealed: int
    unkeyed: int
    sealed: int = 0


class Verifier:
    """Takes all rows in the order of their numbers; judges them by content and by neighbours."""

    def __init__(
        self,
        keys: AuditKeys,
        watched: Iterable[int] = (),
        *,
        seal: ChainRow | None = None,
        first: ChainRow | None = None,
    ) -> None:
        """`watched` are the sizes whose head is needed later, for checkpoints.

        `seal` is a genuine one (`audit_seal.is_genuine`). `first` is the first row that will be
        fed, if earlier rows are not read.
        """
        self._all_keys = keys
        self._keys = {edition: keys.for_rows(edition) for edition in (1, EDITION)}
        self._tips = keys.for_tips()
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
        self._edition = 0  # of the last row
        self._not_before = 0
        self._has_tip = False
        self._seal_seq = seal.seq if seal else 0
        self._digest = Digest()
        self._emptied: frozenset[int] = frozenset()  # before the seal, and nothing says why
        if seal:
            self._emptied = frozenset(erased_rows({"rows": seal_body(seal).get("emptied")}))
        if first:
            self._begin_at(first)

    def _begin_at(self, first: ChainRow) -> None:
        """Trust the rows before it; the row itself is checked like any other."""
        self._seq, self._head = first.seq - 1, first.prev
        self._key_id = UNKEYED if first.key_id is None else first.key_id
        self._unsealed = self._seq if is_unsealed(first) else 0
        self._edition = 1
        self._not_before = self._seq

    def feed(self, rows: Iterable[ChainRow]) -> bool:
        """Check more rows; False after a bad row, when further rows need no check.

        A row is a tuple in the order of ChainRow's fields.
        """
        for row in rows:
            if self._holds(row):
                continue
            whole = ChainRow._make(row)
            try:
                reason = self._judge(whole)
            except (TypeError, ValueError, AttributeError):  # a column holds another type
                reason = "a column holds a value that Kortex never wrote"
            if reason:
                seq = whole.seq if isinstance(whole.seq, int) else self._seq + 1
                self._bad = Bad(seq, reason)
                return False
        return True

    def _holds(self, row: ChainRow) -> bool:
        """A fast path for the ordinary row: an audit log has millions. `_judge` handles the rest."""
        seq, at, kind, session, key, actor, salt, body, body_hash, prev, mac, key_id, *rest = row
        if (
            seq != self._seq + 1
            or prev != self._head
            or key_id != self._key_id
            or rest != _ORDINARY
            or kind == AuditKind.AUDIT_ERASED
            or not self._inner
            or seq <= self._seal_seq
            or self._has_tip
        ):
            return False
        try:
            content = "\0".join((salt, actor, body)).encode()
            event = "-" if key is None else "+" + key
            text = "\0".join((str(seq), prev, body_hash, str(at), kind, session, key_id, event))
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

    def _use(self, key_id: str, edition: int) -> None:
        """The key of the last row is probably that of the next."""
        self._key_id, self._edition = key_id, edition
        key = self._keys[edition][key_id].ljust(_BLOCK_BYTES, b"\0")
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
            max(self._seal_seq - 1, 0),
        )

    def _left_open(self) -> Bad | None:
        if self._erased:
            seq, by = min(self._erased.items())
            return Bad(seq, f"its content is gone, but no row {by} records an erasure")
        if self._must_be_keyed and self._unkeyed and self._key_id == UNKEYED:
            first = self._unsealed + 1
            return Bad(first, "chained without a key although one is configured")
        if self._edition == EDITION and not self._has_tip:
            return Bad(
                self._seq + 1, f"the tail was cut: row {self._seq} is not the last that was written"
            )
        return None

    def _contradicted(self, checkpoints: Iterable[Checkpoint]) -> Bad | None:
        for each in sorted(checkpoints, key=lambda c: c.size):
            if each.size <= max(self._not_before, self._seal_seq - 1):
                continue
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
        if row.seq < self._seal_seq:
            return self._covered(row)
        if row.seq == self._seal_seq:
            return self._sealed(row)
        if row.seq != self._seq + 1:
            return self._misplaced(row.seq)
        if is_unsealed(row) and self._seq == self._unsealed:
            if self._must_be_keyed:
                return "nothing seals it although a key is configured"
            self._unsealed = self._seq = row.seq  # from before the chain
            return ""
        reason = self._unlinked(row) or self._wrong_content(row)
        return reason or self._accept(row)

    def _accept(self, row: ChainRow) -> str:
        if self._has_tip:
            return f"it follows row {self._seq}, which still says that it is the last"
        edition = self._edition_of(row)
        if row.tip is not None and row.tip != tip_of(self._tips[row.key_id], row.seq, row.mac):
            return "the mark of the last row was changed"
        self._has_tip = row.tip is not None
        self._seq, self._head = row.seq, row.mac
        if (row.key_id, edition) != (self._key_id, self._edition) or not self._inner:
            self._use(row.key_id, edition)
        if row.key_id == UNKEYED:
            self._unkeyed += 1
        if row.seq in self._watched:
            self._heads[row.seq] = row.mac
        return ""

    def _covered(self, row: ChainRow) -> str:
        self._digest.add(row)
        self._seq = row.seq
        # The seal took the tip of the row before it, and its digest cannot show the current tip.
        if row.seq == self._seal_seq - 1 and row.tip is not None:
            return "it is marked as the last row, but a seal follows it"
        if row.erased_by is not None and row.seq not in self._emptied:
            self._erased[row.seq] = row.erased_by
        return ""

    def _sealed(self, row: ChainRow) -> str:
        if self._not_before < row.seq - 1 and row.prev != self._digest.hex():
            return "the rows before it differ from the ones it sealed"
        self._head, self._key_id = row.prev, row.key_id
        return self._accept(row)

    def _edition_of(self, row: ChainRow) -> int:
        for edition in (EDITION, 1):
            key = self._keys[edition].get(row.key_id)
            if key is not None and row.mac == mac_of(key, row):
                return edition
        return 0

    def _misplaced(self, seq: int) -> str:
        if seq <= self._seq:
            return f"its number was used before: {self._seq} is the last"
        return f"rows {self._seq + 1} to {seq - 1} are missing before it"

    def _unlinked(self, row: ChainRow) -> str:
        if row.prev != self._head:
            return "it does not follow the row before it"
        if row.key_id == UNKEYED and self._key_id != UNKEYED:
            return "chained without a key after rows that have one"
        if row.key_id not in self._keys[EDITION]:
            return f"its key {row.key_id!r} is not configured; name it in [audit] old_keys"
        edition = self._edition_of(row)
        if not edition:
            return "it was changed: its MAC does not fit"
        if edition > 1 and row.key_id != UNKEYED and self._key_id == UNKEYED and self._seq:
            return "it was chained with a key over rows without one, but no seal covers them"
        return ""

    def _wrong_content(self, row: ChainRow) -> str:
        if row.erased_by is None:
            if row.body_hash != hash_of_content(row.salt, row.actor, row.body):
                return "its actor or body was changed"
            return self._resolve(row) if row.kind == AuditKind.AUDIT_ERASED else ""
        if row.kind == AuditKind.AUDIT_ERASED or (row.actor, row.salt, row.body) != EMPTY:
            return "its content was changed, not erased"
        if row.erased_by <= row.seq:
            return "its content is gone, but the row that records the erasure is older"
        self._erased[row.seq] = row.erased_by
        self._count_erased += 1
        return ""

    def _resolve(self, row: ChainRow) -> str:
        for seq in erased_rows(orjson.loads(row.body)):
            if self._erased.get(seq) == row.seq:
                del self._erased[seq]
            elif seq > self._not_before and seq not in self._emptied | self._erased.keys():
                return f"the content of row {seq}, which it erased, is back"
        return ""


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
