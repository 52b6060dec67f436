"""The table of accepted questions that have not begun; `bot.store.tables` has all of them.

An earlier release does not use it: it may delete a turn's ticket, but not the question.
"""

import sqlalchemy as sa

from bot.store.columns import CleanText, metadata, text

accepted = sa.Table(
    "accepted",
    metadata,
    sa.Column("id", CleanText, primary_key=True),  # the turn's
    text("ask"),  # JSON of bot.domain.session.Ask, redacted as it was heard
)
