"""Votes on answers, and who gave an answer."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table and the column."""
    op.add_column("turns", sa.Column("provider", TEXT))
    op.create_table(
        "feedback",
        sa.Column("turn_id", TEXT, sa.ForeignKey("turns.id"), primary_key=True),
        sa.Column("team", TEXT, primary_key=True),
        sa.Column("user_id", TEXT, primary_key=True),
        sa.Column("vote", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False, server_default=sa.text("''")),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_feedback_at", "feedback", ["at"])


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
