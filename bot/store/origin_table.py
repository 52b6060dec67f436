"""The table that identifies a database, to detect a restored copy; `bot.store.tables` has all of
them.
"""

import sqlalchemy as sa

from bot.store.columns import CleanText, Instant, metadata, text

origin = sa.Table(
    "origin",
    metadata,
    sa.Column("name", CleanText, primary_key=True),  # always ORIGIN: there is one row
    text("written_by", default=True),  # on PostgreSQL the transaction that wrote this row
    text("timeline", default=True),  # on PostgreSQL that of the log, and the database's number
    sa.Column("copied_at", Instant),  # an operator marked it as a copy
)
