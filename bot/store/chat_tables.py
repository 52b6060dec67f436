"""The tables of conversations over HTTP; `bot.store.tables` has all of them."""

import sqlalchemy as sa

from bot.store.columns import CleanText, Instant, metadata, sequence, text

chat_sessions = sa.Table(
    "chat_sessions",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    text("channel"),
    text("thread"),
    text("owner_team"),
    text("owner_user"),
    text("owner_name"),
    sa.Column("created_at", Instant, nullable=False),
    # Includes its deleted events: no number is used twice.
    sa.Column("last_seq", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Index("ix_chat_sessions_channel_thread", "channel", "thread", unique=True),
    sa.Index("ix_chat_sessions_owner_user_created_at", "owner_user", "created_at"),
    sa.Index("ix_chat_sessions_created_at", "created_at"),
)

chat_messages = sa.Table(
    "chat_messages",  # the questions
    metadata,
    sa.Column(
        "session_id", CleanText, sa.ForeignKey("chat_sessions.id"), primary_key=True, nullable=False
    ),
    sa.Column("ts", CleanText, primary_key=True),
    text("key"),  # the asker's idempotency key
    text("digest"),  # of the question: a key is not used for another one
    text("writer", default=True),  # the current writer of the answer; the database refuses others
    sa.Index("ix_chat_messages_session_id_key", "session_id", "key", unique=True),
)

chat_events = sa.Table(
    "chat_events",
    metadata,
    sa.Column("session_id", CleanText, sa.ForeignKey("chat_sessions.id"), primary_key=True),
    sequence(),
    text("kind"),
    text("data"),  # JSON; its writer redacted the text
    text("message", default=True),  # the question's `ts`
    sa.Column("key", CleanText),
    text("to_user", default=True),  # the only reader; empty: all who may see the session
    sa.Column("at", Instant, nullable=False),
    sa.Index("ix_chat_events_session_id_message", "session_id", "message"),
    sa.Index("ix_chat_events_session_id_key", "session_id", "key", unique=True),
    sa.Index("ix_chat_events_at", "at"),
)
