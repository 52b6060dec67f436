"""Ends of turns that could not be shown, kept until they can be."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "undelivered",
        sa.Column("turn_id", TEXT, primary_key=True),
        sa.Column("ask", TEXT, nullable=False),
        sa.Column("final", TEXT, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False, server_default=sa.text("0")),
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
