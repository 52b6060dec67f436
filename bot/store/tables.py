"""The tables, as SQLAlchemy Core metadata. Their history is in `migrations/`.

New columns are nullable or have a default, so that the previous release keeps working (expand);
unused ones are dropped one release later (contract).
"""

from typing import Any

import sqlalchemy as sa

from bot.store import access_tables, alert_tables, chat_tables, ledger_tables  # noqa: F401 - one metadata
from bot.store.columns import CleanText, Instant, index_where, metadata, outside, sequence, text

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", CleanText, primary_key=True),  # from the place: the only key, so none can race
    text("team"),
    text("channel"),
    text("thread_ts"),
    text("name"),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("active_at", Instant, nullable=False),
    sa.Column("closed_at", Instant),  # idle for too long; the next ask reopens it
    sa.Column("resumed_at", Instant),  # earlier messages are no longer read
    sa.Column("resumed_by", CleanText),  # the turn that reopened it
    outside("summary", default=True),  # of the turns up to `summary_ts`
    text("summary_ts", default=True),
    index_where("ix_sessions_open", "active_at", "closed_at IS NULL"),
    index_where("ix_sessions_summed_up", "id", "summary <> ''"),
    sa.Index("ix_sessions_active_at_id", "active_at", "id"),
    sa.Index("ix_sessions_created_at", "created_at"),
)

_RUNNING = sa.text("state = 'running'")
_WHERE_RUNNING: Any = {"sqlite_where": _RUNNING, "postgresql_where": _RUNNING}

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    sa.Column("session_id", CleanText, sa.ForeignKey("sessions.id"), nullable=False),
    text("ts"),  # the ask's message: the order of turns in a session
    text("asker_team"),
    text("asker_user"),
    text("state"),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("answer_ts", CleanText),
    sa.Column("ended_at", Instant),
    sa.Column("provider", CleanText),  # who gave the answer; NULL of what ended without one
    sa.Column("notices", CleanText, nullable=False, server_default=sa.text("'[]'")),  # JSON
    sa.Column("answer", CleanText, nullable=False, server_default=sa.text("''")),  # whole, marked
    # False as long as there may be some, which a sweep is to drop.
    sa.Column("messages_dropped", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("results_dropped", sa.Boolean, nullable=False, server_default=sa.false()),
    # Unique as the ids are; said, so that SQLite reads a thread in order without sorting it.
    sa.Index("ix_turns_session_id_ts_id", "session_id", "ts", "id", unique=True),
    sa.Index("ix_turns_answer_ts", "answer_ts"),
    sa.Index("ix_turns_running", "id", **_WHERE_RUNNING),
    sa.Index("ix_turns_ended_at", "ended_at"),
    index_where("ix_turns_with_messages", "ended_at", "NOT messages_dropped"),
    index_where("ix_turns_with_results", "ended_at", "NOT results_dropped"),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("turn_id", CleanText, sa.ForeignKey("turns.id"), primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
    text("body"),  # JSON of adapters.llm.messages.Message, without its blocks
    # JSON list of the vendor's blocks: signed or encrypted, so not text that could be redacted.
    sa.Column("blocks", CleanText, nullable=False, server_default=sa.text("''")),
)

evidence = sa.Table(
    "evidence",
    metadata,
    sa.Column("turn_id", CleanText, sa.ForeignKey("turns.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    text("tool_call_id"),
    text("tool"),
    text("summary"),
    sa.Column("ok", sa.Boolean, nullable=False),
    sa.Column("latency_ms", sa.BigInteger, nullable=False),
    sa.Column("truncated", sa.Boolean, nullable=False),
    text("content"),
)

# As queries write it out: decided, and not ended yet.
IS_UNDER_WAY = "state IN ('confirmed', 'dispatching')"

proposals = sa.Table(
    "proposals",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    text("session_id"),
    text("turn_id"),
    text("team"),
    text("channel"),
    text("thread_ts"),
    text("asker_team"),
    text("asker_user"),
    text("action"),
    text("product"),
    text("params"),
    text("digest"),
    outside("rationale"),
    outside("model_blast_radius"),
    text("blast_radius"),
    sa.Column("reversible", sa.Boolean, nullable=False),
    sa.Column("untrusted_read", sa.Boolean, nullable=False),
    text("confirm_roles"),  # JSON array of names
    sa.Column("four_eyes", sa.Boolean, nullable=False),
    text("state"),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant, nullable=False),
    sa.Column("card_ts", CleanText),
    sa.Column("decided_by", CleanText),
    sa.Column("decided_at", Instant),
    sa.Column("decision_key", CleanText),  # of the winner: a retry of it is the same win
    outside("reason", default=True),
    sa.Column("dispatched_at", Instant),  # what rate limits count
    outside("outcome", default=True),
    sa.Column("approvals", sa.Integer, nullable=False, server_default=sa.text("1")),
    # JSON arrays: who confirmed so far and when, and the action's own roles.
    sa.Column("votes", CleanText, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("action_roles", CleanText, nullable=False, server_default=sa.text("'[]'")),
    text("supersedes", default=True),
    outside("preview", default=True),
    sa.Column("objects", sa.Integer),
    sa.Column("object_names", CleanText, nullable=False, server_default=sa.text("'[]'")),
    text("fingerprint", default=True),
    sa.Column("confirm_dialog", sa.Boolean, nullable=False, server_default=sa.false()),
    text("channel_name", default=True),  # when it was shown; empty: not known then
    # Counted up with every change that the card has to show; shown: as much of it as it shows.
    sa.Column("card_wanted", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("card_shown", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("card_tries", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("card_due_at", Instant),  # a replica paints, or waits to paint again, until then
    index_where("ix_proposals_card_differs", "card_due_at", "card_shown < card_wanted"),
    index_where("ix_proposals_pending", "expires_at", "state = 'pending'"),
    index_where("ix_proposals_under_way", "decided_at", IS_UNDER_WAY),
    index_where("ix_proposals_dispatched_at", "dispatched_at", "dispatched_at IS NOT NULL"),
    sa.Index("ix_proposals_session_id_state", "session_id", "state"),
    sa.Index("ix_proposals_action_product_dispatched_at", "action", "product", "dispatched_at"),
)

channel_names = sa.Table(
    "channel_names",
    metadata,
    sa.Column("team", CleanText, primary_key=True),
    sa.Column("channel", CleanText, primary_key=True),
    text("name"),  # empty: renamed, and not read again yet
    sa.Column("read_at", Instant, nullable=False),
)

switches = sa.Table(
    "switches",
    metadata,
    sa.Column("name", CleanText, primary_key=True),  # freeze
    sa.Column("is_on", sa.Boolean, nullable=False),
    text("by_user", default=True),
    outside("reason", default=True),
    sa.Column("at", Instant, nullable=False),
)

watches = sa.Table(
    "watches",
    metadata,
    sa.Column("proposal_id", CleanText, primary_key=True),
    sa.Column("kind", CleanText, primary_key=True),  # progress | effect
    sa.Column("due_at", Instant, nullable=False),
    sa.Column("until_at", Instant, nullable=False),
    sa.Index("ix_watches_due_at", "due_at"),
)

audit = sa.Table(
    "audit",
    metadata,
    # INTEGER is SQLite's own row id: the newest row is found without an index of its own.
    sequence(),
    sa.Column("at", Instant, nullable=False),
    text("kind"),
    text("actor"),
    text("session_id"),
    text("body"),  # canonical JSON
    sa.Column("key", CleanText),
    sa.Column("prev", CleanText),  # the chain: the row before, this row's MAC, which key made it
    sa.Column("mac", CleanText),
    sa.Column("key_id", CleanText),
    sa.Column("salt", CleanText),
    sa.Column("body_hash", CleanText),  # of salt, actor and body, which an erasure empties
    sa.Column("erased_by", sa.BigInteger),  # the row that says so
    sa.Column("tip", CleanText),  # of the newest row alone: a trigger takes it from the one before
    sa.Index("ix_audit_key", "key", unique=True),
    sa.Index("ix_audit_session_id", "session_id"),
    sa.Index("ix_audit_actor", "actor"),
    sa.Index("ix_audit_at", "at"),
    index_where("ix_audit_sealed", "seq", "kind = 'audit.sealed'"),
)

audit_checkpoints = sa.Table(
    "audit_checkpoints",
    metadata,
    sequence(),
    sa.Column("at", Instant, nullable=False),
    text("line"),
)

audit_sinks = sa.Table(
    "audit_sinks",
    metadata,
    sa.Column("name", CleanText, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),  # delivered up to here
    sa.Column("claimed_until", Instant, nullable=False),  # by the replica that delivers now
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("source", CleanText, primary_key=True),
    sa.Column("external_id", CleanText, primary_key=True),
    text("type"),
    text("kind"),  # deploy | incident | finding | other, from the type
    text("product"),
    sa.Column("at", Instant, nullable=False),
    outside("data"),  # JSON object
    sa.Column("received_at", Instant, nullable=False),
    sa.Index("ix_events_kind_product_at", "kind", "product", "at"),
    sa.Index("ix_events_kind_at", "kind", "at"),
)

incidents = sa.Table(
    "incidents",
    metadata,
    # The order of arrival; INTEGER is SQLite's own row id, which its word index refers to.
    sa.Column(
        "number",
        sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    text("source"),
    text("external_id"),
    text("scope", default=True),  # the channel that may read it; empty: every channel
    text("product", default=True),
    outside("title", default=True),
    text("severity", default=True),
    sa.Column("opened_at", Instant, nullable=False),
    sa.Column("closed_at", Instant),
    outside("resolution", default=True),
    text("words", default=True),  # what it is found by, see search_words
    sa.Index("ix_incidents_source_external_id", "source", "external_id", unique=True),
)


def is_declared(name: str | None, kind: str, parents: object = None) -> bool:  # noqa: ARG001 - Alembic's signature
    """Whether the metadata is to describe it: the index of words is each database's own."""
    if kind == "index":
        return name != "ix_incidents_words"
    return kind != "table" or not (name or "").startswith("incidents_fts")


tickets = sa.Table(
    "tickets",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    text("thread"),
    text("ts"),
    text("state"),  # waiting | running
    text("owner"),
    sa.Column("stop_by", CleanText),  # who asked it to stop
    # How often its process died with so many steps of it on record; NULL before the first death.
    sa.Column("deaths", sa.Integer),
    sa.Column("steps", sa.Integer),
    sa.Column("trial", sa.Integer),  # how it runs now: `bot.store.tickets`
    sa.Column("alone", sa.Integer),  # deaths while no other suspect ran
    sa.Index("ix_tickets_thread_ts_id", "thread", "ts", "id"),
    sa.Index("ix_tickets_running", "thread", unique=True, **_WHERE_RUNNING),
)

# Newest revisions of the versions that can use the schema as it is: `bot.store.schema`.
schema_served = sa.Table(
    "schema_served",
    metadata,
    sa.Column("revision", CleanText, primary_key=True),
)
replicas = sa.Table(
    "replicas",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    sa.Column("beat", Instant, nullable=False),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("version", CleanText),  # of its known steps; NULL if unknown
)

undelivered = sa.Table(
    "undelivered",  # ends of turns that could not be shown yet
    metadata,
    sa.Column("turn_id", CleanText, primary_key=True),
    text("ask"),
    text("final"),
    sa.Column("since", Instant, nullable=False),
    sa.Column("due_at", Instant, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False, server_default=sa.text("0")),
)

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

# What turns under way have done.
turn_steps = sa.Table(
    "turn_steps",
    metadata,
    sa.Column("turn_id", CleanText, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
    text("name"),
    text("value"),  # JSON in ASCII; redacted before, like the turn's messages
)

# Questions that have not begun. An earlier release does not use it: it may delete a turn's
# ticket, but not the question.
accepted = sa.Table(
    "accepted",
    metadata,
    sa.Column("id", CleanText, primary_key=True),  # the turn's
    text("ask"),  # JSON of bot.domain.session.Ask, redacted as it was heard
)

# Identifies a database, to detect a restored copy.
origin = sa.Table(
    "origin",
    metadata,
    sa.Column("name", CleanText, primary_key=True),  # always ORIGIN: there is one row
    text("written_by", default=True),  # on PostgreSQL the transaction that wrote this row
    text("timeline", default=True),  # on PostgreSQL that of the log, and the database's number
    sa.Column("copied_at", Instant),  # an operator marked it as a copy
)
