"""Who calls over HTTP, and their tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add both tables."""
    op.create_table(
        "callers",
        sa.Column("user_id", TEXT, primary_key=True),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("roles", TEXT, nullable=False),
        sa.Column("account", TEXT, nullable=False, server_default=sa.text("''")),
        sa.Column("known_until", sa.BigInteger),
    )
    op.create_table(
        "caller_tokens",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column(
            "user_id",
            TEXT,
            sa.ForeignKey("callers.user_id", name="fk_caller_tokens_user_id"),
            nullable=False,
        ),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
    )
    op.create_index("ix_caller_tokens_digest", "caller_tokens", ["digest"], unique=True)
    op.create_index("ix_caller_tokens_user_id", "caller_tokens", ["user_id"])


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
