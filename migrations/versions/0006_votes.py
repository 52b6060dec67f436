"""Votes and edits of proposals, and the switch that freezes every action."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# By code point on both databases; PostgreSQL would otherwise order by the cluster's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False, server_default=sa.text(f"'{default}'"))


def upgrade() -> None:
    """Add; nothing is changed or taken away."""
    op.add_column(
        "proposals", sa.Column("approvals", sa.Integer, nullable=False, server_default=sa.text("1"))
    )
    op.add_column("proposals", _text("votes", "[]"))
    op.add_column("proposals", _text("action_roles", "[]"))
    op.add_column("proposals", _text("supersedes"))
    op.add_column(
        "proposals",
        sa.Column("confirm_dialog", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "switches",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("is_on", sa.Boolean, nullable=False),
        _text("by_user"),
        _text("reason"),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_switches"),
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("restore a backup; migrations only go forward")
