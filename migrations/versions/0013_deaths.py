"""How often a turn's process died at the same step, and which steps a replica knows."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns; the release before does not look at them."""
    op.add_column("tickets", sa.Column("deaths", sa.Integer()))
    op.add_column("tickets", sa.Column("steps", sa.Integer()))
    op.add_column("replicas", sa.Column("version", TEXT))


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
