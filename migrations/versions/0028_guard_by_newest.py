"""On PostgreSQL the guard of the trail asks for the newest row, and no longer whether one is newer.

`EXISTS (... WHERE later.seq > OLD.seq)` looks to the planner as if a third of the trail answered it, so
that it read the trail from its beginning to its newest row, at each row that was added.
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

FIXED = ("seq", "at", "kind", "session_id", "key", "prev", "mac", "key_id", "body_hash")
CONTENT = ("actor", "salt", "body", "erased_by")
EMPTIED = (
    "OLD.erased_by IS NULL",
    "OLD.kind <> 'audit.erased'",
    "NEW.actor = '' AND NEW.salt = '' AND NEW.body = ''",
    "NEW.erased_by > OLD.seq",
    "EXISTS (SELECT 1 FROM audit AS said "
    "WHERE said.seq = NEW.erased_by AND said.kind = 'audit.erased')",
)
SUCCEEDED = (
    "OLD.tip IS NOT NULL AND NEW.tip IS NULL",
    "(SELECT max(newest.seq) FROM audit AS newest) > OLD.seq",
)


def upgrade() -> None:
    """Replace the guard's function. SQLite reads the newest row as it is."""
    if op.get_bind().dialect.name != "postgresql":
        return
    erased = (*_unchanged((*FIXED, "tip")), *EMPTIED)
    succeeded = (*_unchanged((*FIXED, *CONTENT)), *SUCCEEDED)
    op.execute(
        "CREATE OR REPLACE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF ({' AND '.join(erased)}) OR ({' AND '.join(succeeded)}) THEN RETURN NEW; END IF; "
        "RAISE EXCEPTION 'audit is append-only'; END $$"
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")


def _unchanged(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"NEW.{name} IS NOT DISTINCT FROM OLD.{name}" for name in names)
