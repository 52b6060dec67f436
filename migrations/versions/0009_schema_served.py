"""Which versions can use this schema, so that an expanded one is fine for the release before."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table; `bot.store.schema` fills it at the end of every upgrade."""
    op.create_table(
        "schema_served",
        sa.Column("revision", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_schema_served"),
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
