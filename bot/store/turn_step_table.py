"""The table of what turns under way have done; `bot.store.tables` has all of them."""

import sqlalchemy as sa

from bot.store.columns import CleanText, metadata, text

turn_steps = sa.Table(
    "turn_steps",
    metadata,
    sa.Column("turn_id", CleanText, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
    text("name"),
    text("value"),  # JSON in ASCII; redacted before, like the turn's messages
)
