"""What the rounds of a thread took in tokens, kept true by triggers of the rounds' rows.

A thread's limit was held against the sum of all its rounds, at each of them. By triggers, because
replicas of the release before write rounds too and know nothing of it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
COUNTED = ("input_uncached", "cache_read", "cache_write", "output")
# A deletion takes the thread's name from its rounds.
CHANGES = ", ".join(("session_id", *COUNTED))
# Threads that may still be asked in. One that was silent for longer begins to count with its next round.
ACTIVE_US = 31 * 86_400_000_000


def _tokens(row: str) -> str:
    return " + ".join(f"{row}.{name}" for name in COUNTED)


ADD = (
    "INSERT INTO session_tokens (session_id, tokens) "
    f"SELECT NEW.session_id, {_tokens('NEW')} WHERE NEW.session_id <> '' "
    "ON CONFLICT (session_id) DO UPDATE SET tokens = session_tokens.tokens + excluded.tokens;"
)
TAKE_AWAY = (
    f"UPDATE session_tokens SET tokens = tokens - ({_tokens('OLD')}) "  # noqa: S608 - our own names
    "WHERE session_id = OLD.session_id;"
)


def upgrade() -> None:
    """Create the table and the triggers, then fill in the threads that are still asked in."""
    op.create_table(
        "session_tokens",
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_session_tokens"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # It lets no round be written until this migration ends, so that none is missed or counted
        # twice: what is filled in below is all that was there before.
        _follow_on_postgresql()
        now_us = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
    else:
        _follow_on_sqlite()
        now_us = "CAST(strftime('%s', 'now') AS INTEGER) * 1000000"
    op.execute(
        sa.text(
            "INSERT INTO session_tokens (session_id, tokens) "  # noqa: S608 - our own names
            f"SELECT sessions.id, SUM({_tokens('spending')}) FROM sessions "
            "JOIN spending ON spending.session_id = sessions.id "
            f"WHERE sessions.active_at >= (SELECT {now_us} - {ACTIVE_US}) GROUP BY sessions.id"
        )
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")


def _follow_on_postgresql() -> None:
    # With the rights of the tables' owner: the bot's own role needs none but to read it.
    op.execute(
        "CREATE FUNCTION spending_keep_session_tokens() RETURNS trigger LANGUAGE plpgsql "
        "SECURITY DEFINER SET search_path FROM CURRENT AS $$ BEGIN "
        f"IF TG_OP <> 'INSERT' THEN {TAKE_AWAY} END IF; "
        f"IF TG_OP <> 'DELETE' THEN {ADD} END IF; "
        "RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER spending_session_tokens "
        f"AFTER INSERT OR DELETE OR UPDATE OF {CHANGES} ON spending "
        "FOR EACH ROW EXECUTE FUNCTION spending_keep_session_tokens()"
    )


def _follow_on_sqlite() -> None:
    for name, moment, body in (
        ("added", "INSERT", ADD),
        ("removed", "DELETE", TAKE_AWAY),
        ("changed", f"UPDATE OF {CHANGES}", f"{TAKE_AWAY} {ADD}"),
    ):
        op.execute(
            f"CREATE TRIGGER spending_tokens_{name} AFTER {moment} ON spending BEGIN {body} END"
        )
