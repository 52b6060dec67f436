"""What a proposal's card is known to show, so that one that differs from its row is painted again."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the index of cards that differ; cards of old rows are taken for true."""
    for name in ("card_wanted", "card_shown", "card_tries"):
        op.add_column(
            "proposals", sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0"))
        )
    op.add_column("proposals", sa.Column("card_due_at", sa.BigInteger))
    op.create_index(
        "ix_proposals_card_differs",
        "proposals",
        ["card_due_at"],
        sqlite_where=sa.text("card_shown < card_wanted"),
        postgresql_where=sa.text("card_shown < card_wanted"),
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
