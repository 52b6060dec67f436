"""The tables of who may ask: workspaces that installed the app, callers over HTTP, their tokens."""

import sqlalchemy as sa

from bot.store.columns import CleanText, Instant, metadata, text

# A workspace that removed the app keeps its row, without a token: its rows stay its own.
installations = sa.Table(
    "installations",
    metadata,
    sa.Column("team", CleanText, primary_key=True),
    text("enterprise"),
    text("app_id"),
    text("bot_user"),
    text("bot_id"),
    text("site"),
    text("sealed"),  # the token, by `bot.privacy.token_seal`; empty: removed
    sa.Column("revision", sa.BigInteger, nullable=False),  # counted up with every change
    sa.Column("changed_at", Instant, nullable=False),
)

oauth_states = sa.Table(
    "oauth_states",
    metadata,
    sa.Column("digest", CleanText, primary_key=True),  # SHA-256: useless without the token
    sa.Column("issued_at", Instant, nullable=False),
)

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
