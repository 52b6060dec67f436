"""Reservations and alerts of the budget; sessions that close when idle, and their summaries."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# By code point on both databases; PostgreSQL would otherwise order by the cluster's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _text(name: str, *, default: bool = False) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False, server_default=sa.text("''") if default else None)


def upgrade() -> None:
    """Add; nothing is changed or taken away."""
    op.add_column("spending", sa.Column("counted_usd_micros", sa.BigInteger))
    op.add_column("spending", _text("channel_id", default=True))
    op.create_index("ix_spending_session_id", "spending", ["session_id"])
    op.create_table(
        "reservations",
        sa.Column("id", TEXT, nullable=False),
        _text("session_id"),
        _text("turn_id"),
        _text("user_id"),
        _text("channel_id"),
        sa.Column("usd_micros", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
    )
    op.create_table(
        "budget_alerts",
        sa.Column("day", TEXT, nullable=False),
        sa.Column("claimed_at", sa.BigInteger, nullable=False),
        sa.Column("told", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("day", name="pk_budget_alerts"),
    )
    for column in ("closed_at", "resumed_at"):
        op.add_column("sessions", sa.Column(column, sa.BigInteger))
    op.add_column("sessions", sa.Column("resumed_by", TEXT))
    op.add_column("sessions", _text("summary", default=True))
    op.add_column("sessions", _text("summary_ts", default=True))


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("restore a backup; migrations only go forward")
