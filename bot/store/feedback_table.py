"""The table of votes on answers; `bot.store.tables` has all of them."""

import sqlalchemy as sa

from bot.store.columns import CleanText, Instant, index_where, metadata, outside, text

feedback = sa.Table(
    "feedback",  # one vote per person and answer
    metadata,
    sa.Column("turn_id", CleanText, sa.ForeignKey("turns.id"), primary_key=True),
    sa.Column("team", CleanText, primary_key=True),
    sa.Column("user_id", CleanText, primary_key=True),
    text("vote"),  # up | down
    outside("reason", default=True),
    sa.Column("at", Instant, nullable=False),
    sa.Index("ix_feedback_at", "at"),
    index_where("ix_feedback_reasons", "at", "reason <> ''"),
)
