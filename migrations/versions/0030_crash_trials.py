"""Whether a turn ran alone when its process died, and how often it died so.

A release before this one leaves both columns NULL, which counts as "beside other turns".
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("tickets", sa.Column("trial", sa.Integer()))
    op.add_column("tickets", sa.Column("alone", sa.Integer()))


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
