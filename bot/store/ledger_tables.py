"""The tables of the ledger: costs of rounds, days and threads; reservations; days with alerts."""

import sqlalchemy as sa

from bot.store.columns import CleanText, Instant, metadata, text

spending = sa.Table(
    "spending",
    metadata,
    sa.Column("turn_id", CleanText, primary_key=True),
    sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("provider", CleanText, primary_key=True),
    text("session_id"),
    text("user_id"),
    text("channel"),
    text("model"),
    text("purpose"),
    sa.Column("input_uncached", sa.BigInteger, nullable=False),
    sa.Column("cache_read", sa.BigInteger, nullable=False),
    sa.Column("cache_write", sa.BigInteger, nullable=False),
    sa.Column("output", sa.BigInteger, nullable=False),
    sa.Column("cost_usd_micros", sa.BigInteger),
    sa.Column("duration_ms", sa.BigInteger, nullable=False),
    sa.Column("at", Instant, nullable=False),
    sa.Column("counted_usd_micros", sa.BigInteger),  # what limits count; null: the cost
    text("channel_id", default=True),
    text("tenant", default=True),  # the workspace that installed the app; empty: home
    sa.Index("ix_spending_at", "at"),
    sa.Index("ix_spending_session_id", "session_id"),
    sa.Index("ix_spending_user_id_at", "user_id", "at"),
)

# Sums of `spending` by its own triggers (migration 0026), of days since that migration ran: a limit
# is held against some rows instead of all rounds of the day.
spent_days = sa.Table(
    "spent_days",
    metadata,
    sa.Column("day", Instant, primary_key=True),  # its midnight UTC
    sa.Column("tenant", CleanText, primary_key=True),
    sa.Column("channel_id", CleanText, primary_key=True),
    sa.Column("cost_usd_micros", sa.BigInteger, nullable=False),
    sa.Column("counted_usd_micros", sa.BigInteger, nullable=False),
)

# The same of a thread's tokens (migration 0029), of threads that were asked in since a month before it.
session_tokens = sa.Table(
    "session_tokens",
    metadata,
    sa.Column("session_id", CleanText, primary_key=True),
    sa.Column("tokens", sa.BigInteger, nullable=False),
)

reservations = sa.Table(
    "reservations",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    text("session_id"),
    text("turn_id"),
    text("user_id"),
    text("channel_id"),
    sa.Column("usd_micros", sa.BigInteger, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("at", Instant, nullable=False),
    text("tenant", default=True),
)

budget_alerts = sa.Table(
    "budget_alerts",
    metadata,
    sa.Column("day", CleanText, primary_key=True),  # 2026-11-21
    sa.Column("claimed_at", Instant, nullable=False),
    sa.Column("told", sa.Boolean, nullable=False),
)
