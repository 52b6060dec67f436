"""The tables of workspaces that installed the app; `bot.store.tables` has all of them."""

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
