"""Threads that alerts open, and their alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add both tables."""
    op.create_table(
        "alert_threads",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column("rule", TEXT, nullable=False),
        sa.Column("product", TEXT, nullable=False),
        sa.Column("channel", TEXT, nullable=False),
        sa.Column("question", TEXT, nullable=False),
        sa.Column("thread_ts", TEXT),
        sa.Column("note_ts", TEXT),
        sa.Column("opened_at", sa.BigInteger, nullable=False),
        sa.Column("heard_at", sa.BigInteger, nullable=False),
        sa.Column("resolved_at", sa.BigInteger),
        sa.Column("ends", sa.Integer, nullable=False),
        sa.Column("is_overflow", sa.Boolean, nullable=False),
        sa.Column("investigation", TEXT, nullable=False),
        sa.Column("left_out", TEXT, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("shown", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due_at", sa.BigInteger),
    )
    op.create_index("ix_alert_threads_rule_heard_at", "alert_threads", ["rule", "heard_at"])
    op.create_index("ix_alert_threads_opened_at", "alert_threads", ["opened_at"])
    op.create_index("ix_alert_threads_channel_thread_ts", "alert_threads", ["channel", "thread_ts"])
    differs = sa.text("shown < wanted")
    op.create_index(
        "ix_alert_threads_differs",
        "alert_threads",
        ["due_at"],
        sqlite_where=differs,
        postgresql_where=differs,
    )
    op.create_table(
        "alerts",
        sa.Column(
            "thread_id",
            TEXT,
            sa.ForeignKey("alert_threads.id", name="fk_alerts_thread_id"),
            nullable=False,
        ),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("group_key", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("labels", TEXT, nullable=False),
        sa.Column("began_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("fires", sa.Integer, nullable=False),
        sa.Column("repeats", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("thread_id", "key", name="pk_alerts"),
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
