"""The newest row of the trail says that it is the newest, so that a cut tail shows."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
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
    "EXISTS (SELECT 1 FROM audit AS later WHERE later.seq > OLD.seq)",
)


def upgrade() -> None:
    """Add the column, the trigger that moves it on, and let the guard tell that from a change."""
    op.add_column("audit", sa.Column("tip", TEXT))
    if op.get_bind().dialect.name == "postgresql":
        _guard_postgresql()
    else:
        _guard_sqlite()


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")


def _let_through(same: str) -> str:
    """The two changes there are: content emptied by an erasure, a tip taken by the next row."""
    erased = _unchanged((*FIXED, "tip"), same) + EMPTIED
    succeeded = _unchanged((*FIXED, *CONTENT), same) + SUCCEEDED
    return f"({' AND '.join(erased)}) OR ({' AND '.join(succeeded)})"


def _unchanged(names: tuple[str, ...], same: str) -> tuple[str, ...]:
    return tuple(f"NEW.{name} {same} OLD.{name}" for name in names)


def _guard_postgresql() -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {_let_through('IS NOT DISTINCT FROM')} THEN RETURN NEW; END IF; "
        "RAISE EXCEPTION 'audit is append-only'; END $$"
    )
    # With the rights of the tables' owner: the bot's own role need not be allowed to update.
    op.execute(
        "CREATE FUNCTION audit_move_tip() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
        "SET search_path FROM CURRENT AS $$ BEGIN "
        "UPDATE audit SET tip = NULL WHERE seq = NEW.seq - 1 AND tip IS NOT NULL; "
        "RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_tip AFTER INSERT ON audit "
        "FOR EACH ROW EXECUTE FUNCTION audit_move_tip()"
    )


def _guard_sqlite() -> None:
    op.execute("DROP TRIGGER audit_no_update")
    op.execute(
        "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit "
        f"WHEN ({_let_through('IS')}) IS NOT TRUE "
        "BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END"
    )
    op.execute(
        "CREATE TRIGGER audit_tip AFTER INSERT ON audit "
        "BEGIN UPDATE audit SET tip = NULL WHERE seq = NEW.seq - 1 AND tip IS NOT NULL; END"
    )
