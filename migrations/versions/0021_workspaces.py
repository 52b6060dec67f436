"""Other workspaces that installed the app, installations under way, and whose spending is."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add both tables and the columns."""
    op.create_table(
        "installations",
        sa.Column("team", TEXT, primary_key=True),
        sa.Column("enterprise", TEXT, nullable=False),
        sa.Column("app_id", TEXT, nullable=False),
        sa.Column("bot_user", TEXT, nullable=False),
        sa.Column("bot_id", TEXT, nullable=False),
        sa.Column("site", TEXT, nullable=False),
        sa.Column("sealed", TEXT, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "oauth_states",
        sa.Column("digest", TEXT, primary_key=True),
        sa.Column("issued_at", sa.BigInteger, nullable=False),
    )
    for table in ("spending", "reservations"):
        op.add_column(
            table, sa.Column("tenant", TEXT, nullable=False, server_default=sa.text("''"))
        )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
