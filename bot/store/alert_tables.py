"""The tables of alerts: the threads they opened, and the alerts of each."""

import sqlalchemy as sa

from bot.store.columns import CleanText, Instant, index_where, metadata, text

alert_threads = sa.Table(
    "alert_threads",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    text("rule"),
    text("product"),
    text("channel"),
    text("question"),
    sa.Column("thread_ts", CleanText),  # NULL: not posted yet, as far as is known
    sa.Column("note_ts", CleanText),
    sa.Column("opened_at", Instant, nullable=False),
    sa.Column("heard_at", Instant, nullable=False),
    sa.Column("resolved_at", Instant),
    sa.Column("ends", sa.Integer, nullable=False),
    sa.Column("is_overflow", sa.Boolean, nullable=False),
    text("investigation"),  # due | begun | left_out
    text("left_out"),
    # Counted up with every change that people have to see; shown: as much of it as they can.
    sa.Column("wanted", sa.Integer, nullable=False),
    sa.Column("shown", sa.Integer, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("due_at", Instant),  # a claim holds until then, or a delay
    sa.Index("ix_alert_threads_rule_heard_at", "rule", "heard_at"),
    sa.Index("ix_alert_threads_opened_at", "opened_at"),
    sa.Index("ix_alert_threads_channel_thread_ts", "channel", "thread_ts"),
    index_where("ix_alert_threads_differs", "due_at", "shown < wanted"),
)

alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("thread_id", CleanText, sa.ForeignKey("alert_threads.id"), primary_key=True),
    sa.Column("key", CleanText, primary_key=True),  # of its source and id
    text("group_key"),
    text("source"),
    text("state"),
    text("title"),  # redacted where it came in, as the labels are
    text("labels"),  # JSON object
    sa.Column("began_at", Instant, nullable=False),
    sa.Column("changed_at", Instant, nullable=False),  # both as its sender says
    sa.Column("fires", sa.Integer, nullable=False),
    sa.Column("repeats", sa.Integer, nullable=False),
    index_where("ix_alerts_with_words", "thread_id", "title <> '' OR labels <> '{}'"),
)
