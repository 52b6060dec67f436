"""The first schema: conversations, proposals, the trail, spending, events, order, replicas."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# By code point on both databases; PostgreSQL would otherwise order by the cluster's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _text(name: str, *, default: bool = False) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False, server_default=sa.text("''") if default else None)


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False)


def _instant(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def upgrade() -> None:
    """Create everything."""
    _conversations()
    _proposals()
    _audit()
    _guard_audit()
    _spending()
    _events()
    _order()


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")


def _conversations() -> None:
    op.create_table(
        "sessions",
        _key("id"),
        _text("team"),
        _text("channel"),
        _text("thread_ts"),
        _text("name"),
        _instant("created_at"),
        _instant("active_at"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_table(
        "turns",
        _key("id"),
        _text("session_id"),
        _text("ts"),
        _text("asker_team"),
        _text("asker_user"),
        _text("state"),
        _instant("started_at"),
        sa.Column("answer_ts", TEXT),
        _instant("ended_at", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_turns"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_turns_session_id"),
    )
    op.create_index("ix_turns_session_id_ts", "turns", ["session_id", "ts"])
    op.create_index("ix_turns_answer_ts", "turns", ["answer_ts"])
    op.create_table(
        "messages",
        _key("turn_id"),
        sa.Column("n", sa.Integer, nullable=False, autoincrement=False),
        _text("body"),
        sa.PrimaryKeyConstraint("turn_id", "n", name="pk_messages"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name="fk_messages_turn_id"),
    )
    op.create_table(
        "evidence",
        _key("turn_id"),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        _text("tool_call_id"),
        _text("tool"),
        _text("summary"),
        sa.Column("ok", sa.Boolean, nullable=False),
        sa.Column("latency_ms", sa.BigInteger, nullable=False),
        sa.Column("truncated", sa.Boolean, nullable=False),
        _text("content"),
        sa.PrimaryKeyConstraint("turn_id", "number", name="pk_evidence"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name="fk_evidence_turn_id"),
    )


def _proposals() -> None:
    op.create_table(
        "proposals",
        _key("id"),
        _text("session_id"),
        _text("turn_id"),
        _text("team"),
        _text("channel"),
        _text("thread_ts"),
        _text("asker_team"),
        _text("asker_user"),
        _text("action"),
        _text("product"),
        _text("params"),
        _text("digest"),
        _text("rationale"),
        _text("model_blast_radius"),
        _text("blast_radius"),
        sa.Column("reversible", sa.Boolean, nullable=False),
        sa.Column("untrusted_read", sa.Boolean, nullable=False),
        _text("confirm_roles"),
        sa.Column("four_eyes", sa.Boolean, nullable=False),
        _text("state"),
        _instant("created_at"),
        _instant("expires_at"),
        sa.Column("card_ts", TEXT),
        sa.Column("decided_by", TEXT),
        _instant("decided_at", nullable=True),
        sa.Column("decision_key", TEXT),
        _text("reason", default=True),
        _instant("dispatched_at", nullable=True),
        _text("outcome", default=True),
        sa.PrimaryKeyConstraint("id", name="pk_proposals"),
    )
    pending = sa.text("state = 'pending'")
    op.create_index(
        "ix_proposals_pending",
        "proposals",
        ["expires_at"],
        sqlite_where=pending,
        postgresql_where=pending,
    )
    op.create_index("ix_proposals_session_id_state", "proposals", ["session_id", "state"])
    op.create_index(
        "ix_proposals_action_product_dispatched_at",
        "proposals",
        ["action", "product", "dispatched_at"],
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", SEQ, nullable=False, autoincrement=False),
        _instant("at"),
        _text("kind"),
        _text("actor"),
        _text("session_id"),
        _text("body"),
        sa.Column("key", TEXT),
        sa.Column("prev", TEXT),
        sa.Column("mac", TEXT),
        sa.Column("key_id", TEXT),
        sa.PrimaryKeyConstraint("seq", name="pk_audit"),
    )
    op.create_index("ix_audit_key", "audit", ["key"], unique=True)
    op.create_index("ix_audit_session_id", "audit", ["session_id"])


def _guard_audit() -> None:
    """Rows of the trail are written once."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'audit is append-only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
            "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()"
        )
        return
    op.execute(
        "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit "
        "BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END"
    )
    op.execute(
        "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit "
        "BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END"
    )
    # INSERT OR REPLACE would delete without firing the trigger above.
    op.execute(
        "CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit "
        "WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq OR key = NEW.key) "
        "BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END"
    )


def _spending() -> None:
    op.create_table(
        "spending",
        _key("turn_id"),
        sa.Column("round", sa.Integer, nullable=False, autoincrement=False),
        _key("provider"),
        _text("session_id"),
        _text("user_id"),
        _text("channel"),
        _text("model"),
        _text("purpose"),
        sa.Column("input_uncached", sa.BigInteger, nullable=False),
        sa.Column("cache_read", sa.BigInteger, nullable=False),
        sa.Column("cache_write", sa.BigInteger, nullable=False),
        sa.Column("output", sa.BigInteger, nullable=False),
        sa.Column("cost_usd_micros", sa.BigInteger),
        sa.Column("duration_ms", sa.BigInteger, nullable=False),
        _instant("at"),
        sa.PrimaryKeyConstraint("turn_id", "round", "provider", name="pk_spending"),
    )
    op.create_index("ix_spending_at", "spending", ["at"])


def _events() -> None:
    op.create_table(
        "events",
        _key("source"),
        _key("external_id"),
        _text("type"),
        _text("kind"),
        _text("product"),
        _instant("at"),
        _text("data"),
        _instant("received_at"),
        sa.PrimaryKeyConstraint("source", "external_id", name="pk_events"),
    )
    op.create_index("ix_events_kind_product_at", "events", ["kind", "product", "at"])
    op.create_index("ix_events_kind_at", "events", ["kind", "at"])


def _order() -> None:
    op.create_table(
        "tickets",
        _key("id"),
        _text("thread"),
        _text("ts"),
        _text("state"),
        _text("owner"),
        sa.Column("stop_by", TEXT),
        sa.PrimaryKeyConstraint("id", name="pk_tickets"),
    )
    running = sa.text("state = 'running'")
    op.create_index("ix_tickets_thread_ts_id", "tickets", ["thread", "ts", "id"])
    op.create_index(
        "ix_tickets_running",
        "tickets",
        ["thread"],
        unique=True,
        sqlite_where=running,
        postgresql_where=running,
    )
    op.create_table(
        "replicas",
        _key("id"),
        _instant("beat"),
        _instant("started_at"),
        sa.PrimaryKeyConstraint("id", name="pk_replicas"),
    )
