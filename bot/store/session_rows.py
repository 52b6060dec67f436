"""A session's messages and evidence as rows, for the turns that are still read.

Those since its last restart, and after its summary.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import orjson
import sqlalchemy as sa
from pydantic import JsonValue, TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.llm.messages import Message
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import SessionId, TurnId
from bot.domain.session import Summary, TurnState
from bot.domain.turn_events import Evidence
from bot.store.audit import append_audit
from bot.store.columns import CleanText, Instant, json_text
from bot.store.dialect import INSERT, now, seconds_ago
from bot.store.tables import evidence as evidence_table
from bot.store.tables import messages as messages_table
from bot.store.tables import sessions, turns

_EPOCH = sa.literal(0, sa.BigInteger())

_MESSAGE = TypeAdapter(Message)
_EVIDENCE = tuple(f.name for f in fields(Evidence))  # each has a column of its name
_BLOCKS = TypeAdapter(tuple[str, ...])


@cache
def opening(dialect: str) -> sa.Executable:
    """Inserts a session, or reopens the stored one; built once, which takes longer than to run it.

    One that was closed, or had no message for longer than `ttl_us`, starts again with `turn`.
    """
    names = ("id", "team", "channel", "thread_ts", "name", "created_at", "active_at")
    insert = INSERT[dialect](sessions).values({name: sa.bindparam(name) for name in names})
    new = insert.excluded.active_at
    silent_us = _micros(new) - _micros(sessions.c.active_at)
    anew = sa.or_(
        sessions.c.closed_at.is_not(None), silent_us > sa.bindparam("ttl_us", type_=sa.BigInteger())
    )

    def when(value: sa.ColumnElement[Any], column: sa.Column[Any]) -> sa.ColumnElement[Any]:
        return sa.case((anew, value), else_=column)

    nothing = sa.literal("", CleanText())
    kept = insert.on_conflict_do_update(
        index_elements=["id"],
        set_={
            "active_at": sa.case((new > sessions.c.active_at, new), else_=sessions.c.active_at),
            "closed_at": sa.null(),
            "resumed_at": when(insert.excluded.created_at, sessions.c.resumed_at),
            "resumed_by": when(sa.bindparam("turn", type_=CleanText()), sessions.c.resumed_by),
            "summary": when(nothing, sessions.c.summary),
            "summary_ts": when(nothing, sessions.c.summary_ts),
        },
    )
    other = turns.c.id != sa.bindparam("turn", type_=CleanText())
    # By a parameter: in RETURNING, column names have no table.
    same = turns.c.session_id == sa.bindparam("same", type_=CleanText())
    others = sa.exists().where(same, other)
    return kept.returning(sessions, others.label("has_other_turns"))


@cache
def beginning(dialect: str) -> sa.Executable:
    """Inserts a turn once."""
    names = ("id", "session_id", "ts", "asker_team", "asker_user", "state", "started_at")
    insert = INSERT[dialect](turns).values({name: sa.bindparam(name) for name in names})
    return insert.on_conflict_do_nothing(index_elements=["id"])


def _inserting(table: sa.Table) -> sa.Insert:
    return table.insert().values({each.name: sa.bindparam(each.name) for each in table.c})


INSERT_MESSAGES: Final = _inserting(messages_table)
# All but what each result holds, which may be megabytes together.
RESULTS_OF: Final[sa.Select[Any]] = (
    sa.select(
        *(c for c in evidence_table.c if c.name != "content"), sa.literal("").label("content")
    )
    .where(evidence_table.c.turn_id == sa.bindparam("turn"))
    .order_by(evidence_table.c.number)
)
INSERT_EVIDENCE: Final = _inserting(evidence_table)


def _micros(at: sa.ColumnElement[datetime]) -> sa.ColumnElement[int]:
    return sa.type_coerce(at, sa.BigInteger())


def is_read_by(this: sa.FromClause) -> Sequence[sa.ColumnElement[bool]]:
    """The finished turns before `this` that it reads, joined with their session."""
    since = sa.func.coalesce(sa.type_coerce(sessions.c.resumed_at, sa.BigInteger()), _EPOCH)
    return (
        turns.c.state != TurnState.RUNNING.value,
        sa.tuple_(turns.c.ts, turns.c.id) < sa.tuple_(this.c.ts, this.c.id),
        turns.c.started_at >= sa.type_coerce(since, Instant()),
    )


async def keep_summary(connection: AsyncConnection, turn: TurnId, summary: Summary) -> None:
    """Put it in the place of the oldest turns that `turn` read."""
    this = turns.alias()
    last = await connection.execute(
        sa.select(turns.c.ts, turns.c.session_id)
        .join(sessions, sessions.c.id == turns.c.session_id)
        .join(this, this.c.id == turn)
        .where(
            turns.c.session_id == this.c.session_id,
            turns.c.ts > sessions.c.summary_ts,
            *is_read_by(this),
        )
        .order_by(turns.c.ts, turns.c.id)
        .offset(summary.turns - 1)
        .limit(1)
    )
    if (row := last.first()) is not None:
        await connection.execute(
            sessions.update()
            .where(sessions.c.id == row.session_id)
            .values(summary=summary.text, summary_ts=row.ts)
        )


async def close_idle(connection: AsyncConnection, ttl: timedelta, most: int = 100) -> int:
    """Close up to `most` sessions without a message for longer than `ttl`, each with its audit row."""
    due = (
        sa.select(sessions.c.id)
        .where(
            sessions.c.closed_at.is_(None),
            sessions.c.active_at < seconds_ago(ttl.total_seconds()),
        )
        .limit(most)
    )
    closed = await connection.execute(
        sessions.update()
        .where(sessions.c.id.in_(due), sessions.c.closed_at.is_(None))
        .values(closed_at=now())
        .returning(sessions.c.id, sessions.c.active_at)
    )
    found = closed.all()
    for row in found:
        since = row.active_at.isoformat()
        await append_audit(
            connection,
            AuditEvent(
                AuditKind.SESSION_CLOSED,
                "kortex",
                {"idle_since": since},
                SessionId(row.id),
                f"{row.id}:closed:{since}",
            ),
        )
    return len(found)


def of_messages(turn: TurnId, messages: Sequence[Message], first: int) -> list[dict[str, Any]]:
    return [
        {
            "turn_id": turn,
            "n": n,
            "body": json_text(replace(message, provider_blocks=())),
            "blocks": json_text(message.provider_blocks) if message.provider_blocks else "",
        }
        for n, message in enumerate(messages, first)
    ]


def to_message(body: str, blocks: str = "") -> Message:
    """The message in a row's JSON; the release before kept the blocks in `body`."""
    message = _MESSAGE.validate_json(body)
    return replace(message, provider_blocks=_BLOCKS.validate_json(blocks)) if blocks else message


def of_evidence(turn: TurnId, evidence: Evidence) -> dict[str, Any]:
    return {"turn_id": turn, **{name: getattr(evidence, name) for name in _EVIDENCE}}


def to_evidence(row: sa.Row[Any]) -> Evidence:
    return Evidence(**{name: getattr(row, name) for name in _EVIDENCE})


def asked_in(messages: Iterable[Message], tool_call_id: str) -> Mapping[str, JsonValue]:
    """The arguments of that call; empty where none of the messages made it, or not with an object."""
    calls = (call for message in messages for call in message.tool_calls)
    written = next((call.arguments for call in calls if call.id == tool_call_id), "")
    try:
        given = orjson.loads(written)
    except orjson.JSONDecodeError:
        return {}
    return given if isinstance(given, dict) else {}
