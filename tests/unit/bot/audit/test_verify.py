"""The verifier finds any change of a chain, and reports nothing without one."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.audit.chain import GENESIS, AuditKeys, ChainRow
from bot.audit.checkpoint import Checkpoint, checkpoints_in, sign
from bot.audit.verify import Verifier, as_ranges, erased_rows
from tests.fixtures_audit import (
    KEYS,
    OTHER_KEYS,
    TAMPERINGS,
    chain_of,
    first_edition,
    fork,
    resealed,
    sealed,
    sealed_over,
    verdict,
)

ROWS = chain_of(40)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MUTATIONS = 10_000


def bad_seq(rows: list[ChainRow], *checkpoints: Checkpoint, keys: AuditKeys = KEYS) -> int:
    bad = verdict(rows, keys, checkpoints).bad
    return bad.seq if bad else 0


def at_size(size: int, rows: list[ChainRow] = ROWS) -> Checkpoint:
    return sign(KEYS, size, rows[size - 1].mac, NOON)


def test_an_untouched_chain_is_valid() -> None:
    found = verdict(ROWS, checkpoints=[at_size(10), at_size(40)])
    assert (found.bad, found.rows, found.head) == (None, 40, ROWS[-1].mac)


def test_an_empty_log_is_valid() -> None:
    assert verdict([]).bad is None


def test_ten_thousand_random_mutations_are_found() -> None:
    dice = random.Random(20261121)
    rows = ROWS[:16]
    missed = [
        (n, tampering.__name__)
        for n in range(MUTATIONS)
        for tampering in [TAMPERINGS[n % len(TAMPERINGS)]]
        for changed in [tampering(rows, dice)]
        if changed != rows and bad_seq(changed) == 0
    ]
    assert missed == []


@pytest.mark.parametrize("name", ["at_us", "kind", "session_id", "actor", "salt", "body"])
def test_the_edited_row_is_named(name: str) -> None:
    changed = getattr(ROWS[16], name)
    value: Any = changed + 1 if name == "at_us" else f"{changed}x"
    rows = [*ROWS[:16], ROWS[16]._replace(**{name: value}), *ROWS[17:]]
    assert bad_seq(rows) == 17


def test_a_deleted_row_is_reported_at_the_next_one() -> None:
    found = verdict(ROWS[:16] + ROWS[17:]).bad
    assert found is not None
    assert (found.seq, found.reason) == (18, "rows 17 to 17 are missing before it")


def test_an_event_key_that_appears_or_disappears_is_found() -> None:
    without = next(row for row in ROWS if row.key is None)
    rows = [row._replace(key="") if row is without else row for row in ROWS]
    assert bad_seq(rows) == without.seq


@pytest.mark.parametrize("column", ["body", "mac", "prev", "salt", "key_id", "actor"])
@pytest.mark.parametrize("value", [None, b"bytes", 7])
def test_a_column_of_another_type_is_found(column: str, value: Any) -> None:
    rows = [*ROWS[:5], ROWS[5]._replace(**{column: value}), *ROWS[6:]]
    assert bad_seq(rows) == 6


@pytest.mark.parametrize("left", [1, 17, 39])
def test_a_truncated_tail_is_found_at_the_new_last_row(left: int) -> None:
    assert bad_seq(ROWS[:left]) == left + 1


def test_a_restored_older_state_needs_an_outside_checkpoint() -> None:
    older = chain_of(30)
    assert bad_seq(older) == 0
    assert bad_seq(older, at_size(40)) == 31


def test_a_row_that_kept_its_tip_is_found_at_the_next() -> None:
    older = chain_of(30)[-1]
    assert bad_seq([*ROWS[:29], older, *ROWS[30:]]) == 31


def test_rows_of_the_first_edition_are_valid_without_a_tip() -> None:
    old = first_edition(20)
    assert bad_seq(old) == 0
    assert bad_seq(chain_of(5, before=old)) == 0
    assert bad_seq(chain_of(5, before=old)[:-1]) == 25


def test_a_history_rewritten_with_the_key_is_found_by_a_checkpoint() -> None:
    forged = chain_of(20, before=ROWS[:20], kind="model.call")
    assert bad_seq(forged) == 0
    assert bad_seq(forged, at_size(20), at_size(40)) == 40


def test_a_checkpoint_of_another_key_is_not_a_witness() -> None:
    stranger = AuditKeys("k1", {"k1": b"not ours"})
    assert bad_seq(ROWS, sign(stranger, 40, ROWS[-1].mac, NOON)) == 40


@pytest.mark.parametrize(
    "change", [{"size": 39}, {"at": "2026-11-21T12:00:01Z"}, {"head": "0" * 64}]
)
def test_a_changed_checkpoint_is_not_a_witness(change: dict[str, object]) -> None:
    assert not replace(at_size(40), **change).is_signed(KEYS)  # type: ignore[arg-type]


def test_checkpoints_are_found_in_any_text() -> None:
    text = f'{{"line": "{at_size(3).line}"}}\nnoise\n> {at_size(40).line} (edited)'
    assert checkpoints_in(text) == [at_size(3), at_size(40)]


def test_keys_may_be_rotated() -> None:
    rows = chain_of(10, OTHER_KEYS, before=ROWS)
    assert bad_seq(rows, at_size(40), keys=OTHER_KEYS) == 0
    assert bad_seq(rows, keys=KEYS) == 41


def test_a_chain_that_began_without_a_key_needs_a_seal_and_never_loses_its_key() -> None:
    unkeyed = chain_of(10, AuditKeys())
    assert bad_seq(chain_of(10, KEYS, before=unkeyed)) == 11
    kept = chain_of(10, KEYS, before=sealed_over(unkeyed))
    found = verdict(kept)
    assert (found.bad, found.sealed, found.rows) == (None, 10, 21)
    assert bad_seq(chain_of(5, AuditKeys(), before=kept)) == 22


def test_the_previous_release_could_give_a_chain_its_key() -> None:
    old = first_edition(10, before=first_edition(10, AuditKeys()))
    assert (bad_seq(old), verdict(old).unkeyed) == (0, 10)


def test_a_seal_covers_any_earlier_rows_unchanged() -> None:
    broken = [*ROWS[:4], ROWS[4]._replace(body="{}"), *ROWS[9:]]
    assert bad_seq(broken) == 5
    kept = chain_of(3, before=sealed_over(broken))
    assert bad_seq(kept) == 0
    missed = [
        (n, tampering.__name__)
        for n in range(1_000)
        for dice in [random.Random(n)]
        for tampering in [TAMPERINGS[n % len(TAMPERINGS)]]
        for changed in [tampering(kept[: len(broken)], dice) + kept[len(broken) :]]
        if changed != kept and bad_seq(changed) == 0
    ]
    assert missed == []


def test_a_seal_without_the_key_does_not_count() -> None:
    stranger = AuditKeys("k1", {"k1": b"not ours"})
    assert bad_seq(sealed_over(chain_of(5, AuditKeys()), stranger)) == 6
    assert bad_seq(sealed_over(chain_of(5, AuditKeys()), AuditKeys())) == 6


def test_content_of_sealed_rows_may_be_erased_and_not_replaced() -> None:
    kept = _erased(chain_of(3, before=sealed_over(chain_of(10, AuditKeys()))), 4, 12)
    assert bad_seq(kept) == 0
    kept[4] = kept[4]._replace(actor="", salt="", body="", erased_by=15)
    assert bad_seq(kept) == 5


@pytest.mark.parametrize("first", [2, 17, 40])
def test_the_end_of_a_chain_is_verified_without_its_beginning(first: int) -> None:
    verifier = Verifier(KEYS, (1, 40), first=ROWS[first - 1])
    verifier.feed(ROWS[first - 1 :])
    assert verifier.finish([at_size(1), at_size(40)]).bad is None


def test_a_log_without_a_key_is_invalid_once_there_is_one() -> None:
    assert bad_seq(chain_of(10, AuditKeys())) == 1
    assert bad_seq(chain_of(10, AuditKeys()), keys=AuditKeys()) == 0


def _unsealed(row: ChainRow) -> ChainRow:
    names = ("salt", "body_hash", "prev", "mac", "key_id", "tip")
    nothing: dict[str, Any] = dict.fromkeys(names)
    return row._replace(**nothing)


def test_rows_from_before_the_chain_are_counted_without_a_key_and_sealed_with_one() -> None:
    old = [_unsealed(row) for row in first_edition(4)]
    first = first_edition(1, AuditKeys(), before=old)[-1]._replace(prev=GENESIS)
    audit_log = [*old, resealed(first, AuditKeys())]
    found = verdict(audit_log, AuditKeys())
    assert (found.bad, found.unsealed, found.rows) == (None, 4, 5)
    assert bad_seq(audit_log) == 1
    assert bad_seq(sealed_over(audit_log)) == 0


def test_a_sealed_row_cannot_be_made_one_from_before_the_chain() -> None:
    robbed = [*(_unsealed(row) for row in ROWS[:4]), *ROWS[4:]]
    assert bad_seq(robbed) == 1
    assert verdict(robbed, AuditKeys("", KEYS.known)).bad is not None
    assert bad_seq([_unsealed(row) for row in ROWS]) == 1


def _erased(rows: list[ChainRow], *seqs: int) -> list[ChainRow]:
    """Content of those rows emptied, and a last row that says so."""
    said = sealed(
        chain_of(1, before=rows)[-1]._replace(
            kind="audit.erased", body=f'{{"rows":"{as_ranges(seqs)}"}}'
        )
    )
    emptied = [
        row._replace(actor="", salt="", body="", erased_by=said.seq, tip=None)
        if row.seq in seqs
        else row._replace(tip=None)
        for row in rows
    ]
    return [*emptied, said]


def test_erased_content_leaves_a_valid_chain() -> None:
    found = verdict(_erased(ROWS, 3, 4, 5, 9), checkpoints=[at_size(40)])
    assert (found.bad, found.erased) == (None, 4)


def test_unexplained_missing_content_is_found() -> None:
    rows = _erased(ROWS, 3)
    rows[6] = rows[6]._replace(actor="", salt="", body="", erased_by=41)
    assert bad_seq(rows) == 7


def test_an_erasure_that_points_elsewhere_is_found() -> None:
    rows = _erased(ROWS, 3)
    rows[2] = rows[2]._replace(erased_by=40)
    assert bad_seq(rows) == 3


def test_an_undone_erasure_is_found() -> None:
    rows = _erased(ROWS, 3)
    rows[2] = ROWS[2]
    assert bad_seq(rows) == 41


def test_new_content_in_an_erased_row_is_found() -> None:
    rows = _erased(ROWS, 3)
    rows[2] = rows[2]._replace(body='{"n":4}')
    assert bad_seq(rows) == 3


def test_an_erasure_record_cannot_be_erased() -> None:
    rows = _erased(_erased(ROWS, 3), 41)
    assert bad_seq(rows) == 41


@pytest.mark.parametrize("seqs", [[1], [1, 2, 3], [1, 3, 4, 9], [7, 8, 10, 11, 12]])
def test_ranges_are_read_as_written(seqs: list[int]) -> None:
    assert list(erased_rows({"rows": as_ranges(seqs)})) == seqs


def test_a_fork_made_with_another_key_is_found_at_its_first_row() -> None:
    assert bad_seq(fork(ROWS, random.Random(1))) > 1
