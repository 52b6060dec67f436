"""The trail becomes a chain: salted content hashes, erasure that keeps the row, checkpoints, sinks."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0002"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Everything but the content, which an erasure empties and whose hash stays.
FIXED = ("seq", "at", "kind", "session_id", "key", "prev", "mac", "key_id", "body_hash")

EMPTIED = (
    "OLD.erased_by IS NULL",
    "OLD.kind <> 'audit.erased'",
    "NEW.actor = '' AND NEW.salt = '' AND NEW.body = ''",
    "NEW.erased_by > OLD.seq",
    "EXISTS (SELECT 1 FROM audit AS said "
    "WHERE said.seq = NEW.erased_by AND said.kind = 'audit.erased')",
)


def upgrade() -> None:
    """Add the columns and tables, and let the guard tell an erasure from a change."""
    op.add_column("audit", sa.Column("salt", TEXT))
    op.add_column("audit", sa.Column("body_hash", TEXT))
    op.add_column("audit", sa.Column("erased_by", sa.BigInteger))
    op.create_index("ix_audit_actor", "audit", ["actor"])
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_table(
        "audit_checkpoints",
        sa.Column("seq", SEQ, nullable=False, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("line", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_audit_checkpoints"),
    )
    op.create_table(
        "audit_sinks",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("claimed_until", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_audit_sinks"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _guard_postgresql()
    else:
        _guard_sqlite()


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")


def _is_erasure(same: str) -> str:
    """The one change that is let through: content emptied, named by a row that says so."""
    unchanged = (f"NEW.{name} {same} OLD.{name}" for name in FIXED)
    return " AND ".join((*unchanged, *EMPTIED))


def _guard_postgresql() -> None:
    op.execute("DROP TRIGGER audit_append_only ON audit")
    op.execute(
        "CREATE TRIGGER audit_append_only BEFORE DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()"
    )
    op.execute(
        "CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {_is_erasure('IS NOT DISTINCT FROM')} THEN RETURN NEW; END IF; "
        "RAISE EXCEPTION 'audit is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit "
        "FOR EACH ROW EXECUTE FUNCTION audit_refuse_change()"
    )
    op.execute(
        "CREATE TRIGGER audit_checkpoints_append_only BEFORE UPDATE OR DELETE OR TRUNCATE "
        "ON audit_checkpoints FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()"
    )


def _guard_sqlite() -> None:
    op.execute("DROP TRIGGER audit_no_update")
    op.execute(
        "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit "
        f"WHEN ({_is_erasure('IS')}) IS NOT TRUE "
        "BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END"
    )
    for event in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_checkpoints_no_{event.lower()} "
            f"BEFORE {event} ON audit_checkpoints "
            "BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END"
        )
