"""Conversations over HTTP: sessions, their questions, and what is told of them in order."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the three tables."""
    op.create_table(
        "chat_sessions",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column("channel", TEXT, nullable=False),
        sa.Column("thread", TEXT, nullable=False),
        sa.Column("owner_team", TEXT, nullable=False),
        sa.Column("owner_user", TEXT, nullable=False),
        sa.Column("owner_name", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    )
    at = ("channel", "thread")
    op.create_index("ix_chat_sessions_channel_thread", "chat_sessions", at, unique=True)
    owned = ("owner_user", "created_at")
    op.create_index("ix_chat_sessions_owner_user_created_at", "chat_sessions", owned)
    op.create_index("ix_chat_sessions_created_at", "chat_sessions", ["created_at"])
    op.create_table(
        "chat_messages",
        _of_session("chat_messages"),
        sa.Column("ts", TEXT, primary_key=True),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("writer", TEXT, nullable=False, server_default=sa.text("''")),
    )
    keyed = ("session_id", "key")
    op.create_index("ix_chat_messages_session_id_key", "chat_messages", keyed, unique=True)
    op.create_table(
        "chat_events",
        _of_session("chat_events"),
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("data", TEXT, nullable=False),
        sa.Column("message", TEXT, nullable=False, server_default=sa.text("''")),
        sa.Column("key", TEXT),
        sa.Column("to_user", TEXT, nullable=False, server_default=sa.text("''")),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_chat_events_session_id_message", "chat_events", ("session_id", "message"))
    op.create_index("ix_chat_events_session_id_key", "chat_events", keyed, unique=True)
    op.create_index("ix_chat_events_at", "chat_events", ["at"])


def _of_session(table: str) -> sa.Column[str]:
    owner = sa.ForeignKey("chat_sessions.id", name=f"fk_{table}_session_id")
    return sa.Column("session_id", TEXT, owner, primary_key=True)


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")
