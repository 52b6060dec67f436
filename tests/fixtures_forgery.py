"""Attacks on the audit log by a database writer without a key: as SQL, in any order.

The audit log it begins with has a beginning without a key, a seal over it, rows with a key, an erasure
and checkpoints. The forger kept a copy of rows as they were earlier, but for their tips.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from bot.audit.chain import AuditKeys, ChainRow, hash_of_content, mac_of, tip_of
from bot.audit.seal import Digest

GUARDS = (
    "audit_no_update", "audit_no_delete", "audit_no_replace", "audit_tip",
    "audit_checkpoints_no_update", "audit_checkpoints_no_delete",
)  # fmt: skip
COLUMNS = tuple("at" if name == "at_us" else name for name in ChainRow._fields)
SEALS = ("prev", "mac", "key_id", "body_hash", "salt", "erased_by", "tip")
ROWS = 24  # of the audit log it begins with
NOBODY = AuditKeys()
STRANGER = AuditKeys("1", {"1": b"a key of the forger's own, 32 long"})

Rows = list[ChainRow]


@dataclass(frozen=True)
class Forgery:
    """One thing that the forger does."""

    name: str
    do: Callable[[Rows, Rows], Rows]  # what there is, what there was before the erasure

    def __repr__(self) -> str:
        """For the example that was not noticed."""
        return self.name


def _renumbered(rows: Rows) -> Rows:
    return [row._replace(seq=n) for n, row in enumerate(rows, 1)]


def _chained(rows: Rows, start: int, keys: AuditKeys) -> Rows:
    """Sealed again from there on, without a key or with the forger's own."""
    done = rows[:start]
    for row in rows[start:]:
        own = row._replace(
            prev=str(done[-1].mac) if done else "0" * 64,
            session_id=str(row.session_id),
            key=None if row.key is None else str(row.key),
            actor=str(row.actor),
            salt=str(row.salt),
            key_id=keys.current,
            tip=None,
        )
        own = own._replace(body_hash=hash_of_content(own.salt, own.actor, own.body))
        done.append(own._replace(mac=mac_of(keys.for_rows()[keys.current], own)))
    return _tipped(done, keys)


def _tipped(rows: Rows, keys: AuditKeys) -> Rows:
    last = rows[-1:]
    return rows[:-1] + [
        row._replace(tip=tip_of(keys.for_tips()[keys.current], row.seq, str(row.mac)))
        for row in last
    ]


def _with_seal(rows: Rows, keys: AuditKeys) -> Rows:
    """A seal that the forger made, over everything."""
    digest = Digest()
    for row in rows:
        digest.add(row)
    last = rows[-1].seq if rows else 0
    said = ChainRow(
        last + 1, 0, "audit.sealed", "", None, "cli:root", "aa", '{"rows":1}', "", "", "", "1"
    )
    sealed = _chained([said._replace(key_id=keys.current)], 0, keys)[0]
    own = sealed._replace(prev=digest.hex(), key_id="1")
    return [*rows, own._replace(mac=mac_of(keys.for_rows()[keys.current], own))]


_AT = st.integers(0, ROWS - 1)


def _edits() -> st.SearchStrategy[Forgery]:
    def made(at: int, name: str, value: Any) -> Forgery:
        field = "at_us" if name == "at" else name

        def do(rows: Rows, _: Rows) -> Rows:
            changed: dict[str, Any] = {field: value}
            return [row._replace(**changed) if n == at else row for n, row in enumerate(rows)]

        return Forgery(f"{name} of row {at + 1} := {value!r}", do)

    values = st.sampled_from(
        [None, "", "0" * 64, "1", 7, "U9", "audit.sealed", "audit.erased", b"x"]
    )
    names = st.sampled_from([name for name in COLUMNS if name not in ("seq", "at", "kind", "body")])
    return st.builds(made, _AT, names, values)


def _robbed() -> st.SearchStrategy[Forgery]:
    def made(first: int, columns: list[str], value: str | None) -> Forgery:
        def do(rows: Rows, _: Rows) -> Rows:
            gone: dict[str, Any] = dict.fromkeys(columns, value)
            return rows[:first] + [row._replace(**gone) for row in rows[first:]]

        return Forgery(f"{columns} := {value!r} from row {first + 1}", do)

    some = st.lists(st.sampled_from(SEALS), min_size=1, unique=True)
    return st.builds(made, _AT, some | st.just(list(SEALS)), st.sampled_from([None, ""]))


def _cuts() -> st.SearchStrategy[Forgery]:
    def made(first: int, count: int, close: bool) -> Forgery:
        def do(rows: Rows, _: Rows) -> Rows:
            left = rows[:first] + rows[first + count :]
            return _renumbered(left) if close else left

        return Forgery(f"{count} rows from {first + 1} deleted, numbers closed: {close}", do)

    return st.builds(made, _AT, st.integers(1, ROWS), st.booleans())


def _moves() -> st.SearchStrategy[Forgery]:
    def made(source: int, target: int, old: bool, anew: bool) -> Forgery:
        def do(rows: Rows, before: Rows) -> Rows:
            pool = before if old else rows
            row = pool[source % len(pool)] if pool else None
            put = [*rows[:target], *([row] if row else []), *rows[target:]]
            return _renumbered(put) if anew else _unique(put)

        return Forgery(f"row {source + 1} (earlier: {old}) put at {target + 1}, moved: {anew}", do)

    return st.builds(made, _AT, st.integers(0, ROWS), st.booleans(), st.booleans())


def _replayed() -> st.SearchStrategy[Forgery]:
    def made(first: int, count: int) -> Forgery:
        def do(rows: Rows, before: Rows) -> Rows:
            return before[: first + count] if first == 0 else rows[:first] + before[first:]

        return Forgery(f"rows from {first + 1} ({count}) as they were earlier", do)

    return st.builds(made, _AT, st.integers(1, ROWS))


def _forged() -> st.SearchStrategy[Forgery]:
    def made(first: int, keys: AuditKeys, actor: str) -> Forgery:
        def do(rows: Rows, _: Rows) -> Rows:
            own = [row._replace(actor=actor) for row in rows[first:]]
            return _chained(rows[:first] + own, first, keys) if rows[first:] else rows

        return Forgery(f"sealed anew from row {first + 1} with {keys.current or 'no key'}", do)

    return st.builds(made, _AT, st.sampled_from([NOBODY, STRANGER]), st.just("U9"))


def _sealed() -> st.SearchStrategy[Forgery]:
    def made(keys: AuditKeys) -> Forgery:
        return Forgery("a seal of the forger's own", lambda rows, _: _with_seal(rows, keys))

    return st.builds(made, st.sampled_from([NOBODY, STRANGER]))


def _tips() -> st.SearchStrategy[Forgery]:
    def made(keys: AuditKeys | None) -> Forgery:
        def do(rows: Rows, _: Rows) -> Rows:
            if keys is None:  # the newest row's, copied
                tip = next((row.tip for row in rows if row.tip), "")
                return [row._replace(tip=tip) for row in rows[-1:]] and [
                    *rows[:-1],
                    rows[-1]._replace(tip=tip),
                ]
            return _tipped(rows, keys)

        return Forgery("the last row is made to look like the newest", do)

    return st.builds(made, st.sampled_from([None, NOBODY, STRANGER]))


def _unique(rows: Rows) -> Rows:
    """What a table with numbers and event keys takes: the first of each."""
    found: dict[int, ChainRow] = {}
    for row in rows:
        found.setdefault(row.seq, row)
    return sorted(found.values(), key=lambda row: row.seq)


FORGERIES = st.lists(
    st.one_of(_edits(), _robbed(), _cuts(), _moves(), _replayed(), _forged(), _sealed(), _tips()),
    min_size=1,
    max_size=4,
)
