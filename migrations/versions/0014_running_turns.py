"""Finds the few turns that run among all that ever did."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

RUNNING = sa.text("state = 'running'")


def upgrade() -> None:
    """Create the index."""
    op.create_index(
        "ix_turns_running", "turns", ["id"], sqlite_where=RUNNING, postgresql_where=RUNNING
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
