"""Messages that were accepted and are not begun yet."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "accepted",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column("ask", TEXT, nullable=False),
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
