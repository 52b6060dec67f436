"""The tables of callers over HTTP and their tokens; `bot.store.tables` has all of them."""

import sqlalchemy as sa

from bot.store.columns import CleanText, Instant, metadata, text

callers = sa.Table(
    "callers",
    metadata,
    sa.Column("user_id", CleanText, primary_key=True),
    text("kind"),  # person | service
    text("name"),
    text("roles"),  # JSON array of names
    text("account", default=True),  # a user of the chat platform, with or without its team
    # For callers of an identity provider: until then. NULL: while a token of theirs lives.
    sa.Column("known_until", Instant),
)

caller_tokens = sa.Table(
    "caller_tokens",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    sa.Column("user_id", CleanText, sa.ForeignKey("callers.user_id"), nullable=False),
    text("digest"),  # SHA-256 of the token, which is 256 random bits
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant),
    sa.Column("revoked_at", Instant),
    sa.Column("last_used_at", Instant),
    sa.Index("ix_caller_tokens_digest", "digest", unique=True),
    sa.Index("ix_caller_tokens_user_id", "user_id"),
)
