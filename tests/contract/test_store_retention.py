"""Retention: old rows go, young or active ones stay, and the audit log is untouched."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from adapters.llm.messages import Message, Role
from bot.domain.audit import AuditKind
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask, TurnState
from bot.domain.turn_events import Evidence
from bot.store import tables
from bot.store.database import Database
from bot.store.retention import DAY_S, StoredRetention
from bot.store.sessions import StoredSessions
from bot.store.tables import audit, evidence, messages, turn_steps, turns
from bot.upkeep.retention import RecordsSweep, RetentionPeriods, RetentionSweep
from tests.fixtures_database import database, database_url
from tests.held_connection import reading, writing
from tools.redactor import Redacted

__all__ = ["database", "database_url"]

SEEN = Evidence(
    1, "call1", "core__get_logs", "3 lines", ok=True, latency_ms=3, truncated=False, content="{}"
)


def ask(ts: str) -> Ask:
    place = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1700000000.000100"))
    return Ask(
        place,
        MessageTs(ts),
        Person(TeamId("T1"), UserId("U1")),
        Redacted("why?"),
        "incident-checkout",
    )


async def turn(sessions: StoredSessions, ts: str, ended: datetime) -> None:
    asked = ask(ts)
    await sessions.begin_turn(asked, "checkout", ended)
    said = [Message(Role.ASSISTANT, text="because")]
    await sessions.finish_turn(
        asked.turn_id,
        TurnState.ANSWERED,
        said,
        [SEEN],
        ended,
        notices=("openai was down",),
        answer="all of it",
    )


async def counts(database: Database) -> tuple[int, int, int]:
    async with reading(database) as connection:
        found = [
            await connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (messages, evidence, turns)
        ]
    return found[0] or 0, found[1] or 0, found[2] or 0


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        (RetentionPeriods(0, 0), (6, 3, 3)),
        (RetentionPeriods(7, 0), (4, 3, 3)),
        (RetentionPeriods(0, 7), (6, 2, 3)),
        (RetentionPeriods(1, 1), (2, 1, 3)),
        (RetentionPeriods(0, 0, nothing=True), (2, 1, 3)),
    ],
)
async def test_old_rows_are_deleted_and_new_ones_stay(
    database: Database, kept: RetentionPeriods, left: tuple[int, int, int]
) -> None:
    sessions = StoredSessions(database)
    now = datetime.now(UTC)
    for days, ts in ((0, "3.0"), (3, "2.0"), (30, "1.0")):
        await turn(sessions, ts, now - timedelta(days=days, minutes=1))
    sweep = RetentionSweep(StoredRetention(database), kept)

    await sweep.run()
    await sweep.run()

    assert await counts(database) == left


async def test_notices_are_deleted_with_the_results(database: Database) -> None:
    sessions = StoredSessions(database)
    for days, ts in ((3, "2.0"), (30, "1.0")):
        await turn(sessions, ts, datetime.now(UTC) - timedelta(days=days))

    await StoredRetention(database).drop_results(7 * DAY_S)

    told = [list(await sessions.notices(ask(ts).turn_id)) for ts in ("2.0", "1.0")]
    assert told == [["openai was down"], []]


async def test_whole_answers_are_deleted_with_the_messages(database: Database) -> None:
    sessions = StoredSessions(database)
    for days, ts in ((3, "2.0"), (30, "1.0")):
        await turn(sessions, ts, datetime.now(UTC) - timedelta(days=days))

    await StoredRetention(database).drop_messages(7 * DAY_S)

    kept = [await sessions.answer(ask(ts).turn_id) for ts in ("2.0", "1.0")]
    assert kept == ["all of it", ""]


@pytest.mark.parametrize("retain", [True, False])
async def test_an_answer_is_stored_only_where_messages_are(
    database: Database, retain: bool
) -> None:
    sessions = StoredSessions(database, retain=retain)
    await sessions.begin_turn(ask("1.0"), "checkout", datetime.now(UTC))
    is_kept = await sessions.finish_turn(
        ask("1.0").turn_id, TurnState.ANSWERED, [], [], datetime.now(UTC), answer="all of it"
    )

    assert (is_kept, await sessions.answer(ask("1.0").turn_id)) == (
        retain,
        "all of it" if retain else "",
    )


async def test_a_running_turn_and_the_audit_log_are_left_alone(database: Database) -> None:
    sessions = StoredSessions(database)
    old = datetime.now(UTC) - timedelta(days=30)
    await sessions.begin_turn(ask("1.0"), "checkout", old)

    assert await StoredRetention(database).drop_messages(DAY_S) == 0
    async with reading(database) as connection:
        kinds = list(await connection.scalars(sa.select(audit.c.kind)))
    assert kinds == [AuditKind.TURN_STARTED.value]


async def test_steps_of_an_older_release_are_deleted_with_the_results(database: Database) -> None:
    now = datetime.now(UTC)
    for days, ts in ((3, "2.0"), (30, "1.0")):
        await turn(StoredSessions(database), ts, now - timedelta(days=days))
        async with writing(database) as connection:
            row = {"turn_id": ask(ts).turn_id, "n": 0, "name": "open", "value": "[]"}
            await connection.execute(turn_steps.insert(), row)

    await StoredRetention(database).drop_results(7 * DAY_S)

    async with reading(database) as connection:
        left = list(await connection.scalars(sa.select(turn_steps.c.turn_id)))
    assert left == [ask("2.0").turn_id]


async def test_a_summary_is_deleted_with_its_messages(database: Database) -> None:
    sessions = StoredSessions(database)
    await turn(sessions, "1.0", datetime.now(UTC) - timedelta(days=30))
    async with writing(database) as connection:
        await connection.execute(
            tables.sessions.update().values(summary="so far", summary_ts="1.0")
        )

    await StoredRetention(database).drop_messages(60 * DAY_S)
    assert await summaries(database) == ["so far"]
    await StoredRetention(database).drop_messages(7 * DAY_S)
    assert await summaries(database) == [""]


async def summaries(database: Database) -> list[str]:
    async with reading(database) as connection:
        return list(await connection.scalars(sa.select(tables.sessions.c.summary)))


async def test_without_retention_a_turn_leaves_no_content(database: Database) -> None:
    sessions = StoredSessions(database, retain=False)
    await turn(sessions, "1.0", datetime.now(UTC))
    await turn(sessions, "2.0", datetime.now(UTC))

    assert await counts(database) == (0, 0, 2)
    assert (
        await sessions.history(
            (await sessions.begin_turn(ask("2.0"), "checkout", datetime.now(UTC))).id,
            ask("2.0").turn_id,
        )
        == []
    )


@pytest.mark.parametrize(
    ("kept", "days"),
    [
        (RetentionPeriods(30, 3), 3),
        (RetentionPeriods(2, 0), 2),
        (RetentionPeriods(30, 30), 7),
        (
            RetentionPeriods(0, 0),
            7,
        ),  # messages and results are kept for good; no one reads the record
        (RetentionPeriods(0, 0, nothing=True), 1),
    ],
)
async def test_the_engines_record_is_deleted_with_the_shorter_retention_between_a_day_and_a_week(
    kept: RetentionPeriods, days: int
) -> None:
    asked: list[float] = []

    async def forget(older_than_s: float) -> int:
        asked.append(older_than_s)
        return 1

    await RecordsSweep(forget, kept).run()

    assert asked == [days * DAY_S]
