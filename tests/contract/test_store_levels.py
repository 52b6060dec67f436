"""How far behind the database's own work is, on SQLite and on PostgreSQL."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.app import audit
from bot.app.audit import sinks_behind
from bot.cli.check.storage import check_behind
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import ProposalState
from bot.ports.proposals import Decision
from bot.settings.model import AuditSettings, Settings
from bot.store.audit_sinks import SinkCursors
from bot.store.database import Database
from bot.store.levels import Behind, StoredLevels
from bot.store.proposals import StoredProposals
from tests.fixtures_database import database, database_url
from tests.slack_ingress import proposal

__all__ = ["database", "database_url"]

EVENT = AuditEvent(AuditKind.DISPATCH_INTENT, "U1", {})


async def test_waiting_work_is_reported_by_its_oldest_age(database: Database) -> None:
    levels, store = StoredLevels(database), StoredProposals(database)
    nothing = await levels.stuck_s()
    late = datetime.now(UTC) - timedelta(minutes=5)
    for name, expires_at in (("late", late), ("soon", late + timedelta(hours=1))):
        row = replace(proposal(), id=ProposalId(name), expires_at=expires_at)
        await store.create(replace(row, state=ProposalState.PENDING), EVENT)
    before = await levels.stuck_s()
    await store.decide(
        ProposalId("soon"), Decision(ProposalState.CONFIRMED, UserId("U1"), "key"), EVENT
    )
    await levels.touch()
    after = await levels.stuck_s()

    assert nothing == {"under_way": 0.0, "expired": 0.0}
    assert before["under_way"] == 0.0
    assert 299 < before["expired"] < 420
    assert 0.0 <= after["under_way"] < 120


async def test_a_sinks_lag_is_reported_in_rows_and_seconds(
    database: Database,
) -> None:
    levels, cursors = StoredLevels(database), SinkCursors(database)
    assert await levels.behind(["log"]) == {"log": Behind()}
    for name in ("one", "two"):
        row = replace(proposal(), id=ProposalId(name), state=ProposalState.PENDING)
        await StoredProposals(database).create(row, EVENT)
    for sink, taken in (("log", 2), ("nats", 1)):
        await cursors.claim(sink, 1.0)
        await cursors.advance(sink, taken)

    behind = await levels.behind(["log", "nats", "http"])

    assert {sink: each.rows for sink, each in behind.items()} == {"log": 0, "nats": 1, "http": 2}
    assert behind["log"].seconds == 0.0
    assert 0.0 <= behind["nats"].seconds <= behind["http"].seconds < 120


async def test_a_sink_with_a_long_waiting_row_is_stalled(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = replace(proposal(), id=ProposalId("one"), state=ProposalState.PENDING)
    await StoredProposals(database).create(row, EVENT)
    before = await sinks_behind(Settings(), database)
    monkeypatch.setattr(audit, "STALLED_S", 0.0)
    stalled = await sinks_behind(Settings(), database)

    assert before == []
    assert [line.split(",")[0] for line in stalled] == ["log is 1 rows behind"]


async def test_check_names_the_sink_that_is_far_behind(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "FAR_ROWS", 2)
    for name in ("one", "two"):
        row = replace(proposal(), id=ProposalId(name), state=ProposalState.PENDING)
        await StoredProposals(database).create(row, EVENT)
    cursors = SinkCursors(database)
    await cursors.claim("log", 1.0)
    await cursors.advance("log", 1)
    settings = Settings(audit=AuditSettings(events_url="https://collector.example"))

    (found,) = await check_behind(settings, database)

    assert found.mark == "WARNING"
    assert found.detail.startswith("http is 2 rows behind, the oldest has waited for ")
