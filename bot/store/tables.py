"""The tables, as SQLAlchemy Core metadata. Their history is in `migrations/`.

New columns are nullable or have a default, so that the previous release keeps working (expand);
unused ones are dropped one release later (contract).
"""

from typing import Any

import sqlalchemy as sa

from bot.store import accepted_table, alert_tables, caller_tables, chat_tables, turn_step_table  # noqa: F401 - one metadata
from bot.store import feedback_table as _feedback_table  # noqa: F401 - has every table
from bot.store import ledger_tables as _ledger_tables  # noqa: F401
from bot.store import origin_table as _origin_table  # noqa: F401
from bot.store import workspace_tables as _workspace_tables  # noqa: F401
from bot.store.columns import CleanText, Instant, index_where, metadata
from bot.store.columns import outside as _outside
from bot.store.columns import sequence as _sequence
from bot.store.columns import text as _text

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", CleanText, primary_key=True),  # from the place: the only key, so none can race
    _text("team"),
    _text("channel"),
    _text("thread_ts"),
    _text("name"),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("active_at", Instant, nullable=False),
    sa.Column("closed_at", Instant),  # idle for too long; the next ask reopens it
    sa.Column("resumed_at", Instant),  # earlier messages are no longer read
    sa.Column("resumed_by", CleanText),  # the turn that reopened it
    _outside("summary", default=True),  # of the turns up to `summary_ts`
    _text("summary_ts", default=True),
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
    _text("ts"),  # the ask's message: the order of turns in a session
    _text("asker_team"),
    _text("asker_user"),
    _text("state"),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("answer_ts", CleanText),
    sa.Column("ended_at", Instant),
    sa.Column("provider", CleanText),  # who gave the answer; NULL of what ended without one
    sa.Column("notices", CleanText, nullable=False, server_default=sa.text("'[]'")),  # JSON
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
    _text("body"),  # JSON of adapters.llm.messages.Message, without its blocks
    # JSON list of the vendor's blocks: signed or encrypted, so not text that could be redacted.
    sa.Column("blocks", CleanText, nullable=False, server_default=sa.text("''")),
)

evidence = sa.Table(
    "evidence",
    metadata,
    sa.Column("turn_id", CleanText, sa.ForeignKey("turns.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    _text("tool_call_id"),
    _text("tool"),
    _text("summary"),
    sa.Column("ok", sa.Boolean, nullable=False),
    sa.Column("latency_ms", sa.BigInteger, nullable=False),
    sa.Column("truncated", sa.Boolean, nullable=False),
    _text("content"),
)

# As queries write it out: decided, and not ended yet.
IS_UNDER_WAY = "state IN ('confirmed', 'dispatching')"

proposals = sa.Table(
    "proposals",
    metadata,
    sa.Column("id", CleanText, primary_key=True),
    _text("session_id"),
    _text("turn_id"),
    _text("team"),
    _text("channel"),
    _text("thread_ts"),
    _text("asker_team"),
    _text("asker_user"),
    _text("action"),
    _text("product"),
    _text("params"),
    _text("digest"),
    _outside("rationale"),
    _outside("model_blast_radius"),
    _text("blast_radius"),
    sa.Column("reversible", sa.Boolean, nullable=False),
    sa.Column("untrusted_read", sa.Boolean, nullable=False),
    _text("confirm_roles"),  # JSON array of names
    sa.Column("four_eyes", sa.Boolean, nullable=False),
    _text("state"),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant, nullable=False),
    sa.Column("card_ts", CleanText),
    sa.Column("decided_by", CleanText),
    sa.Column("decided_at", Instant),
    sa.Column("decision_key", CleanText),  # of the winner: a retry of it is the same win
    _outside("reason", default=True),
    sa.Column("dispatched_at", Instant),  # what rate limits count
    _outside("outcome", default=True),
    sa.Column("approvals", sa.Integer, nullable=False, server_default=sa.text("1")),
    # JSON arrays: who confirmed so far and when, and the action's own roles.
    sa.Column("votes", CleanText, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("action_roles", CleanText, nullable=False, server_default=sa.text("'[]'")),
    _text("supersedes", default=True),
    _outside("preview", default=True),
    sa.Column("objects", sa.Integer),
    sa.Column("object_names", CleanText, nullable=False, server_default=sa.text("'[]'")),
    _text("fingerprint", default=True),
    sa.Column("confirm_dialog", sa.Boolean, nullable=False, server_default=sa.false()),
    _text("channel_name", default=True),  # when it was shown; empty: not known then
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
    _text("name"),  # empty: renamed, and not read again yet
    sa.Column("read_at", Instant, nullable=False),
)

switches = sa.Table(
    "switches",
    metadata,
    sa.Column("name", CleanText, primary_key=True),  # freeze
    sa.Column("is_on", sa.Boolean, nullable=False),
    _text("by_user", default=True),
    _outside("reason", default=True),
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
    _sequence(),
    sa.Column("at", Instant, nullable=False),
    _text("kind"),
    _text("actor"),
    _text("session_id"),
    _text("body"),  # canonical JSON
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
    _sequence(),
    sa.Column("at", Instant, nullable=False),
    _text("line"),
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
    _text("type"),
    _text("kind"),  # deploy | incident | finding | other, from the type
    _text("product"),
    sa.Column("at", Instant, nullable=False),
    _outside("data"),  # JSON object
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
    _text("source"),
    _text("external_id"),
    _text("scope", default=True),  # the channel that may read it; empty: every channel
    _text("product", default=True),
    _outside("title", default=True),
    _text("severity", default=True),
    sa.Column("opened_at", Instant, nullable=False),
    sa.Column("closed_at", Instant),
    _outside("resolution", default=True),
    _text("words", default=True),  # what it is found by, see search_words
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
    _text("thread"),
    _text("ts"),
    _text("state"),  # waiting | running
    _text("owner"),
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
    _text("ask"),
    _text("final"),
    sa.Column("since", Instant, nullable=False),
    sa.Column("due_at", Instant, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False, server_default=sa.text("0")),
)
