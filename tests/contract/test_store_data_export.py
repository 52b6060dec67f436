"""The data of a session or a person is exported and deleted, on both databases."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from dbos import DBOSClient, DBOSPortableJSONSerializer
from pydantic import JsonValue

from bot.app.rules import engine_database
from bot.audit.chain import AuditKeys
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import ProposalState
from bot.engine.records import EngineRecords
from bot.store.alert_tables import alert_threads, alerts
from bot.store.alerts import StoredAlerts
from bot.store.audit import StoredAudit
from bot.store.audit_by_hand import erase
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.chat_tables import chat_events, chat_messages, chat_sessions
from bot.store.data_export import StillOpen, Subject, SubjectRecords
from bot.store.database import Database
from bot.store.proposals import StoredProposals
from bot.store.sessions import StoredSessions
from bot.store.tables import evidence, messages, proposals, sessions, turns
from tests.contract.test_store_alerts import alert, file
from tests.contract.test_store_retention import ask, turn
from tests.fixtures_database import database, database_url
from tests.held_connection import reading, writing
from tests.slack_ingress import proposal

__all__ = ["database", "database_url"]

SESSION = f"session:{ask('1.0').place.key}"
PERSON = str(ask("1.0").asker.user)
CONTENT = (messages, evidence, turns, sessions, alerts, alert_threads)
CHATS = (chat_events, chat_messages, chat_sessions)
AT = datetime(2026, 11, 22, tzinfo=UTC)


async def conversation(database: Database) -> None:
    """Two turns, an alert in its thread, the same place over HTTP, and a proposal that was rejected."""
    place, store = ask("1.0").place, StoredSessions(database)
    for ts in ("1.0", "2.0"):
        await turn(store, ts, AT)
    (opened,) = await file(StoredAlerts(database), alert("checkout is slow"))
    row = proposal(
        id=ProposalId("p_1"),
        session_id=SESSION,
        state=ProposalState.PENDING,
        decided_by=UserId("U2"),
    )
    await StoredProposals(database).create(row, AuditEvent(AuditKind.PROPOSAL_CREATED, "U2"))
    async with writing(database) as connection:
        there = alert_threads.update().where(alert_threads.c.id == opened.id)
        await connection.execute(there.values(channel=place.channel, thread_ts=place.thread_ts))
        await connection.execute(
            chat_sessions.insert().values(
                id="c1",
                channel=place.channel,
                thread=place.thread_ts,
                owner_team="@api",
                owner_user=PERSON,
                owner_name="Mira",
                created_at=AT,
            )
        )
        message = {"session_id": "c1", "ts": "1.0", "key": "k", "digest": "d"}
        await connection.execute(chat_messages.insert().values(message))
        event = {"session_id": "c1", "seq": 1, "kind": "text", "data": "{}", "at": AT}
        await connection.execute(chat_events.insert().values(event))


async def left(database: Database, *tables: sa.Table) -> list[int]:
    async with reading(database) as connection:
        counts = [sa.select(sa.func.count()).select_from(table) for table in tables]
        return [await connection.scalar(each) or 0 for each in counts]


@pytest.mark.parametrize(
    ("subject", "kept"),
    [(Subject(session=SESSION), [0, 0]), (Subject(person=PERSON), [1, 1])],
    ids=["session", "person"],
)
async def test_a_subject_is_deleted_once_nothing_of_it_is_open(
    database: Database, subject: Subject, kept: list[int]
) -> None:
    await conversation(database)
    records = SubjectRecords(database, subject)
    with pytest.raises(StillOpen, match="p_1"):
        await records.check_closed()
    async with writing(database) as connection:
        await connection.execute(proposals.update().values(state="rejected"))
    await records.check_closed()
    exported = [row["table"] async for row in records.rows()]
    assert {"turns", "messages", "evidence", "proposals", "chat_sessions"} <= set(exported)
    assert await records.names() == {"p_1", ask("1.0").turn_id, ask("2.0").turn_id}
    assert (await records.user())[0] == subject.person

    assert await records.delete() >= len(exported) - 1

    assert await left(database, *CONTENT[:4], *CHATS, proposals) == [0] * 8
    assert await left(database, alerts, alert_threads) == kept
    assert await records.delete() == 0


async def test_the_engines_records_are_found_by_name_and_deleted_after_their_end(
    database_url: str,
) -> None:
    client = DBOSClient(
        system_database_url=engine_database(database_url), serializer=DBOSPortableJSONSerializer()
    )
    given = {"turn:1": {"asker": {"user": "U1"}}, "turn:2": ["U11"], "decision:3": "p_1"}
    for workflow, value in given.items():
        client.enqueue(
            {"queue_name": "none", "workflow_name": "turn", "workflow_id": workflow}, value
        )
    records = EngineRecords(engine_database(database_url))

    found = await records.naming(frozenset({"p_1"}), "U1")
    assert sorted(found) == ["decision:3", "turn:1"]
    for of_another in (["turn:1"], ["U1", "T2"]):  # by name, and by what they were given
        assert await records.naming(frozenset({"p_1"}), "U1", of_another) == ["decision:3"]
    assert await records.delete(found) == 0  # they would still run

    assert await records.end_unfinished() == 3
    assert await records.end_unfinished() == 0
    assert await records.delete(found) == 2
    assert [each.workflow_id for each in client.list_workflows()] == ["turn:2"]
    client.destroy()


async def test_rows_that_name_a_person_are_erased_too(database: Database) -> None:
    audit_log = StoredAudit(database)
    bodies: list[dict[str, JsonValue]] = [{"by": "U1"}, {"by": "U11"}, {"roles": ["x", "U1"]}]
    for body in bodies:
        await audit_log.append(AuditEvent(AuditKind.STARTED, "bot", body))

    assert await erase(database, by="cli:me", reason="asked", person="U1") == 0
    assert await erase(database, by="cli:me", reason="asked", person="U1", named=True) == 2
    assert (await verify(StoredAuditReader(database), AuditKeys(), [])).bad is None
