"""What was read of a proposal's target: the dry run, the counted objects, the fingerprint."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns; old rows had nothing read."""
    for name, default in (("preview", "''"), ("object_names", "'[]'"), ("fingerprint", "''")):
        op.add_column(
            "proposals", sa.Column(name, TEXT, nullable=False, server_default=sa.text(default))
        )
    op.add_column("proposals", sa.Column("objects", sa.Integer))


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
