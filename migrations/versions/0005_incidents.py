"""Incidents of the past, with an index of their words: FTS5 on SQLite, GIN on PostgreSQL."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False, server_default=sa.text("''"))


def upgrade() -> None:
    """Create the table and the index."""
    op.create_table(
        "incidents",
        sa.Column("number", NUMBER, nullable=False, autoincrement=True),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("external_id", TEXT, nullable=False),
        _text("scope"),
        _text("product"),
        _text("title"),
        _text("severity"),
        sa.Column("opened_at", sa.BigInteger, nullable=False),
        sa.Column("closed_at", sa.BigInteger),
        _text("resolution"),
        _text("words"),
        sa.PrimaryKeyConstraint("number", name="pk_incidents"),
    )
    op.create_index(
        "ix_incidents_source_external_id", "incidents", ["source", "external_id"], unique=True
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE INDEX ix_incidents_words ON incidents "
            "USING gin (string_to_array(words, ' ')) WITH (fastupdate = off)"
        )
    else:
        _sqlite_index()


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")


def _sqlite_index() -> None:
    # The words come split and cleaned; positions and sizes are not used, so they are not kept.
    op.execute(
        "CREATE VIRTUAL TABLE incidents_fts USING fts5("
        "words, content='incidents', content_rowid='number', detail=none, columnsize=0, "
        "tokenize=\"unicode61 remove_diacritics 0 tokenchars '_'\")"
    )
    added = "INSERT INTO incidents_fts(rowid, words) VALUES (new.number, new.words);"
    removed = (
        "INSERT INTO incidents_fts(incidents_fts, rowid, words) "
        "VALUES ('delete', old.number, old.words);"
    )
    for moment, body in (
        ("INSERT", added),
        ("DELETE", removed),
        ("UPDATE OF words", removed + " " + added),
    ):
        name = moment.split(" ", 1)[0].lower()
        op.execute(f"CREATE TRIGGER incidents_{name} AFTER {moment} ON incidents BEGIN {body} END")
