"""What channels are called, kept over a restart, and under which name a proposal was shown."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table, add the column."""
    op.create_table(
        "channel_names",
        sa.Column("team", TEXT, nullable=False),
        sa.Column("channel", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("read_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("team", "channel", name="pk_channel_names"),
    )
    op.add_column(
        "proposals", sa.Column("channel_name", TEXT, nullable=False, server_default=sa.text("''"))
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
