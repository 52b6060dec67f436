"""What is looked at again after a dispatch: orders still running, and whether an action helped."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "watches",
        sa.Column("proposal_id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("until_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("proposal_id", "kind", name="pk_watches"),
    )
    op.create_index("ix_watches_due_at", "watches", ["due_at"])


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
