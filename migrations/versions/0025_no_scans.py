"""Nothing that grows is read whole: indexes, and what a sweep has emptied is marked."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_sessions_active_at_id", "sessions", ("active_at", "id")),
    ("ix_sessions_created_at", "sessions", ("created_at",)),
    ("ix_turns_ended_at", "turns", ("ended_at",)),
    ("ix_spending_user_id_at", "spending", ("user_id", "at")),
)
PARTIAL = (
    ("ix_sessions_open", "sessions", "active_at", "closed_at IS NULL"),
    ("ix_sessions_summed_up", "sessions", "id", "summary <> ''"),
    ("ix_turns_with_messages", "turns", "ended_at", "NOT messages_dropped"),
    ("ix_turns_with_results", "turns", "ended_at", "NOT results_dropped"),
    ("ix_proposals_under_way", "proposals", "decided_at", "state IN ('confirmed', 'dispatching')"),
    ("ix_feedback_reasons", "feedback", "at", "reason <> ''"),
    ("ix_alerts_with_words", "alerts", "thread_id", "title <> '' OR labels <> '{}'"),
    ("ix_audit_sealed", "audit", "seq", "kind = 'audit.sealed'"),
)


def upgrade() -> None:
    """Add them; the index of a thread's turns gives way to one that has their whole order."""
    for name in ("messages_dropped", "results_dropped"):
        op.add_column(
            "turns", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())
        )
    for name, table, columns in INDEXES:
        op.create_index(name, table, columns)
    for name, table, column, condition in PARTIAL:
        where = sa.text(condition)
        op.create_index(name, table, [column], sqlite_where=where, postgresql_where=where)
    in_order = ("session_id", "ts", "id")
    op.create_index("ix_turns_session_id_ts_id", "turns", in_order, unique=True)
    op.drop_index("ix_turns_session_id_ts", "turns")


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
