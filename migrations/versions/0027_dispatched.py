"""What went out lately is found by when it did, also where it is not known of which action."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index: of the few proposals that were ever dispatched."""
    where = sa.text("dispatched_at IS NOT NULL")
    op.create_index(
        "ix_proposals_dispatched_at",
        "proposals",
        ["dispatched_at"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
