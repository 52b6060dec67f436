"""Chains made by hand, as the store writes them, and every way to tamper with one."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from bot.audit.chain import GENESIS, AuditKeys, ChainRow, hash_of_content, mac_of, tip_of
from bot.audit.checkpoint import Checkpoint
from bot.audit.seal import Digest, newest_genuine
from bot.audit.verify import Summary, Verifier, as_ranges

KEYS = AuditKeys("k1", {"k1": b"the key of the tests"})
OTHER_KEYS = AuditKeys("k2", {"k2": b"another key", "k1": b"the key of the tests"})

Chain = list[ChainRow]


def sealed(row: ChainRow, keys: AuditKeys = KEYS) -> ChainRow:
    """The row with the hash and MAC that its other columns ask for."""
    row = row._replace(body_hash=hash_of_content(row.salt, row.actor, row.body))
    mac = mac_of(keys.for_rows()[row.key_id], row)
    return row._replace(mac=mac, tip=tip_of(keys.for_tips()[row.key_id], row.seq, mac))


def chain_of(
    count: int, keys: AuditKeys = KEYS, *, before: Sequence[ChainRow] = (), kind: str = "tool.call"
) -> Chain:
    """`count` rows, after those of `before`."""
    rows = list(before)
    start = rows[-1].seq if rows else 0
    for seq in range(start + 1, start + count + 1):
        rows[-1:] = [row._replace(tip=None) for row in rows[-1:]]
        rows.append(
            sealed(
                ChainRow(
                    seq=seq,
                    at_us=1_700_000_000_000_000 + seq,
                    kind=kind,
                    session_id=f"session:{seq % 7}",
                    key=None if seq % 3 == 0 else f"event:{seq}",
                    actor=f"U{seq % 5}",
                    salt=f"{seq:032x}",
                    body=f'{{"n":{seq},"tool":"core__get_logs"}}',
                    body_hash="",
                    prev=(rows[-1].mac or GENESIS) if rows else GENESIS,
                    mac="",
                    key_id=keys.current,
                ),
                keys,
            )
        )
    return rows


def resealed(row: ChainRow, keys: AuditKeys) -> ChainRow:
    """As the release before sealed it: by another key, and without a tip."""
    return row._replace(mac=mac_of(keys.for_rows(1)[row.key_id], row), tip=None)


def first_edition(count: int, keys: AuditKeys = KEYS, *, before: Sequence[ChainRow] = ()) -> Chain:
    """`count` rows of the release before, after those of `before`."""
    rows = list(before)
    for _ in range(count):
        rows.append(resealed(chain_of(1, keys, before=rows)[-1], keys))
    return rows


def sealed_over(rows: Sequence[ChainRow], keys: AuditKeys = KEYS) -> Chain:
    """They and a seal that takes them as they are, and the tip from the last, as the database does."""
    digest = Digest()
    for row in rows:
        digest.add(row)
    last = rows[-1].seq
    emptied = as_ranges(row.seq for row in rows if row.erased_by is not None)
    said = chain_of(1, keys)[0]._replace(
        seq=last + 1,
        kind="audit.sealed",
        prev=digest.hex(),
        body=f'{{"rows":{last},"emptied":"{emptied}"}}',
    )
    return [*rows[:-1], rows[-1]._replace(tip=None), sealed(said, keys)]


def verdict(
    rows: Sequence[ChainRow], keys: AuditKeys = KEYS, checkpoints: Sequence[Checkpoint] = ()
) -> Summary:
    """What the verifier says of them, in the order of their numbers as a database gives them."""
    verifier = Verifier(keys, (c.size for c in checkpoints), seal=newest_genuine(rows, keys))
    verifier.feed(sorted(rows, key=lambda row: row.seq))
    return verifier.finish(checkpoints)


def _other_text(text: str, dice: random.Random) -> str:
    if not text:
        return "x"
    at = dice.randrange(len(text))
    return text[:at] + chr(ord(text[at]) ^ (1 << dice.randrange(5))) + text[at + 1 :]


def edit(rows: Chain, dice: random.Random) -> Chain:
    """One bit of one column of one row."""
    at = dice.randrange(len(rows))
    name = dice.choice([n for n in ChainRow._fields if n not in ("seq", "erased_by")])
    value = getattr(rows[at], name)
    changed: Any = value + 1 if isinstance(value, int) else _other_text(value or "", dice)
    return [*rows[:at], rows[at]._replace(**{name: changed}), *rows[at + 1 :]]


def delete(rows: Chain, dice: random.Random) -> Chain:
    """One row, the last among them."""
    at = dice.randrange(len(rows))
    return rows[:at] + rows[at + 1 :]


def delete_and_renumber(rows: Chain, dice: random.Random) -> Chain:
    """One row, and the numbers closed over the gap."""
    at = dice.randrange(len(rows) - 1)
    return rows[:at] + [row._replace(seq=row.seq - 1) for row in rows[at + 1 :]]


def insert(rows: Chain, dice: random.Random) -> Chain:
    """A copy of one row somewhere else, the numbers after it moved on."""
    at, what = dice.randrange(len(rows)), dice.choice(rows)
    moved = [row._replace(seq=row.seq + 1) for row in rows[at:]]
    return [*rows[:at], what._replace(seq=at + 1), *moved]


def reorder(rows: Chain, dice: random.Random) -> Chain:
    """Two rows change their numbers."""
    one, two = dice.sample(range(len(rows)), 2)
    changed = list(rows)
    changed[one] = rows[one]._replace(seq=rows[two].seq)
    changed[two] = rows[two]._replace(seq=rows[one].seq)
    return changed


def fork(rows: Chain, dice: random.Random) -> Chain:
    """From one row on, another history, sealed with a key that the forger made up."""
    at = dice.randrange(1, len(rows))
    forger = AuditKeys("k1", {"k1": dice.randbytes(32)})
    return chain_of(len(rows) - at, forger, before=rows[:at], kind="model.call")


def unkey(rows: Chain, dice: random.Random) -> Chain:
    """From one row on, another history without a key, which anyone can seal."""
    at = dice.randrange(len(rows))
    return chain_of(len(rows) - at, AuditKeys(), before=rows[:at])


def empty(rows: Chain, dice: random.Random) -> Chain:
    """Content taken away as if it had been erased, with no row that says so."""
    at = dice.randrange(len(rows) - 1)
    by = dice.choice(rows[at + 1 :]).seq
    gone = rows[at]._replace(actor="", salt="", body="", erased_by=by)
    return [*rows[:at], gone, *rows[at + 1 :]]


TAMPERINGS: Sequence[Callable[[Chain, random.Random], Chain]] = (
    edit,
    delete,
    delete_and_renumber,
    insert,
    reorder,
    fork,
    unkey,
    empty,
)
