"""The table of what was accepted and is not begun yet; `bot.store.tables` has all of them.

The release before knows nothing of it: it may take a turn's ticket away, but not what was asked.
"""

import sqlalchemy as sa

from bot.store.columns import CleanText, metadata, text

accepted = sa.Table(
    "accepted",
    metadata,
    sa.Column("id", CleanText, primary_key=True),  # the turn's
    text("ask"),  # JSON of bot.domain.session.Ask, redacted as it was heard
)
