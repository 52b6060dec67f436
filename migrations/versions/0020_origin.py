"""Where the database was last at home, by which a restored copy is known."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "origin",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("written_by", TEXT, nullable=False, server_default=sa.text("''")),
        sa.Column("timeline", TEXT, nullable=False, server_default=sa.text("''")),
        sa.Column("copied_at", sa.BigInteger),
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
