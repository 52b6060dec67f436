"""A database with years behind it: every table that grows, filled in bulk on SQLite and PostgreSQL.

Rows lie in the past, are over, and belong to each other as the product's do.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import sqlalchemy as sa

from bot.store.columns import metadata

_AT: Final = "1700000000000000 + i * 60000000"
_CHANNEL: Final = "'C' || (i % 50)"
_SESSION: Final = "'session:T0:C' || (i % 50) || ':' || i"
_OF_SESSION: Final = "'session:T0:C' || (i / 10 % 50) || ':' || (1 + i / 10 % 5000)"
_TURN: Final = "'turn:old:' || i"
_PERSON: Final = "'U' || (i % 40)"

# How many, and SQL over the row's number `i`; other columns follow from their types.
_ROWS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    "sessions": (
        5_000,
        {"id": _SESSION, "team": "'T0'", "channel": _CHANNEL, "closed_at": _AT, "summary": "''"},
    ),
    "turns": (
        50_000,
        {
            "id": _TURN,
            "session_id": _OF_SESSION,
            "state": "'answered'",
            "asker_team": "'T0'",
            "asker_user": _PERSON,
            "messages_dropped": "true",
            "results_dropped": "true",
        },
    ),
    "messages": (50_000, {"turn_id": _TURN, "n": "0", "body": "'{}'"}),
    "evidence": (50_000, {"turn_id": _TURN, "number": "1"}),
    "spending": (
        50_000,
        {
            "turn_id": _TURN,
            "session_id": _OF_SESSION,
            "user_id": _PERSON,
            "channel_id": _CHANNEL,
            "tenant": "''",
        },
    ),
    "spent_days": (20_000, {"channel_id": _CHANNEL, "tenant": "'T' || i"}),
    "audit": (
        50_000,
        {
            "seq": "i + 1000000",
            "kind": "'tool.call'",
            "actor": _PERSON,
            "session_id": _OF_SESSION,
            "erased_by": "NULL",
            "tip": "NULL",
        },
    ),
    "audit_checkpoints": (5_000, {"seq": "i + 1000000"}),
    "proposals": (
        20_000,
        {
            "state": "'succeeded'",
            "session_id": _OF_SESSION,
            "card_wanted": "1",
            "card_shown": "1",
            "card_due_at": "NULL",
            "action": "'a' || (i % 10)",
            "product": "'p' || (i % 20)",
            "votes": "'[]'",
        },
    ),
    "feedback": (10_000, {"turn_id": _TURN, "reason": "''", "vote": "'up'"}),
    "events": (20_000, {"source": "'s'", "kind": "'deploy'", "product": "'p' || (i % 20)"}),
    "incidents": (
        10_000,
        {"number": "i + 1000000", "source": "'old'", "words": "'w' || (i % 500)"},
    ),
    "alert_threads": (
        5_000,
        {
            "rule": "'r' || (i % 10)",
            "channel": _CHANNEL,
            "investigation": "'begun'",
            "wanted": "1",
            "shown": "1",
            "due_at": "NULL",
        },
    ),
    "alerts": (
        20_000,
        {"thread_id": "'id:' || (1 + i / 5)", "title": "''", "labels": "'{}'"},
    ),
    "chat_sessions": (
        5_000,
        {"channel": "'c' || (i % 50)", "owner_team": "'@api'", "owner_user": "'@u' || (i % 40)"},
    ),
    "chat_messages": (20_000, {"session_id": "'id:' || (1 + i / 5)"}),
    "chat_events": (50_000, {"session_id": "'id:' || (1 + i / 11)", "to_user": "''"}),
    "channel_names": (2_000, {}),
}
# The engine's: as many more of a decision that has ended, with its steps.
_ENGINE: Final = ("workflow_status", "operation_outputs")
_WORKFLOWS: Final = 20_000

GROWING: Final = frozenset({*_ROWS, *_ENGINE})


def fill(connection: sa.Connection, times: int = 1, but: frozenset[str] = frozenset()) -> None:
    """All of it but those tables, so many times as many rows; a decision must have ended there.

    On PostgreSQL behind the triggers.
    """
    is_postgresql = connection.dialect.name == "postgresql"
    if is_postgresql:
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
    schema = "dbos" if is_postgresql else None
    for statement in _statements(connection, schema, times, but):
        # Without a driver's marks for parameters, which these texts hold as they are.
        connection.execute(sa.text(re.sub(r"(?=:)", r"\\", statement)))


def analyse(connection: sa.Connection) -> None:
    """Statistics of it, which PostgreSQL makes by itself and SQLite only on request."""
    connection.exec_driver_sql("ANALYZE")


def _statements(
    connection: sa.Connection, schema: str | None, times: int, but: frozenset[str]
) -> Iterator[str]:
    for name, (rows, own) in _ROWS.items():
        if name not in but:
            columns = metadata.tables[name].columns
            values = [own.get(each.name) or _of_type(each) for each in columns]
            yield _insert(name, [each.name for each in columns], times * rows, values, "")
    seen = sa.inspect(connection)
    prefix = f"{schema}." if schema else ""
    one = f"(SELECT workflow_uuid FROM {prefix}operation_outputs LIMIT 1)"  # noqa: S608 - our own names
    for name in _ENGINE:
        columns_of = [str(each["name"]) for each in seen.get_columns(name, schema=schema)]
        values = ["'old:' || i" if each == "workflow_uuid" else f'"{each}"' for each in columns_of]
        of_one = f"CROSS JOIN (SELECT * FROM {prefix}{name} WHERE workflow_uuid = {one}) AS one"  # noqa: S608
        yield _insert(prefix + name, columns_of, times * _WORKFLOWS, values, of_one)


def _insert(table: str, columns: list[str], rows: int, values: list[str], beside: str) -> str:
    named = ", ".join(f'"{each}"' for each in columns)
    return (
        f"INSERT INTO {table} ({named}) "  # noqa: S608 - our own names
        f"WITH RECURSIVE n(i) AS "
        f"(SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
        f"SELECT {', '.join(values)} FROM n {beside}"
    )


def _of_type(column: sa.Column[object]) -> str:
    match column.type:
        case sa.Boolean():
            return "false"
        case sa.Integer():
            return "i"
        case sa.types.TypeDecorator(impl=sa.BigInteger()):
            return _AT
        case _:
            return f"'{column.name}:' || i"
