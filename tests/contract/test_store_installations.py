"""Workspaces that installed the app, as they are kept: sealed, each its own, on both databases."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.llm.messages import Message, Role
from bot.app.build import Base
from bot.app.conversation import _notes
from bot.app.platforms import Directory
from bot.domain.audit import AuditEntry, AuditEvent, AuditKind
from bot.domain.budget import BudgetLimits, Limit
from bot.domain.callers import CallerKind, KnownCaller
from bot.domain.channel import UNMATCHED, Channel
from bot.domain.feedback import Vote
from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    TurnId,
    UserId,
)
from bot.domain.session import Ask, TurnState
from bot.domain.tenancy import HOME, scope_of, tenant_of
from bot.domain.turn_events import Evidence
from bot.ports.installations import Installed
from bot.ports.platform import by_id
from bot.privacy.token_seal import TokenSeal
from bot.store import installations
from bot.store.access_tables import installations as table
from bot.store.access_tables import oauth_states
from bot.store.alert_tables import alert_threads
from bot.store.alerts import StoredAlerts
from bot.store.audit import StoredAudit
from bot.store.audit_by_hand import erase
from bot.store.audit_reading import StoredAuditReader
from bot.store.callers import StoredCallers
from bot.store.data_export import Subject, SubjectRecords
from bot.store.database import Database
from bot.store.feedback import StoredFeedback
from bot.store.incidents import StoredIncidents
from bot.store.installations import StoredInstallations, StoredOAuthStates
from bot.store.ledger import StoredLedger
from bot.store.ledger_tables import spending
from bot.store.overview import StoredOverview
from bot.store.person import UnknownWorkspace
from bot.store.proposals import StoredProposals
from bot.store.sessions import StoredSessions
from bot.store.tables import proposals
from bot.store.tables import tickets as waiting_turns
from bot.store.tenant_filter import TenantScope
from tests.contract.test_store_alerts import RULE, alert, file
from tests.fixtures_database import database, database_url
from tests.fixtures_stores import HELD, ROUND, stand_in_line
from tests.held_connection import reading, writing
from tests.slack_ingress import proposal
from tools.capabilities import IncidentQuery
from tools.redactor import Redacted

__all__ = ["database", "database_url"]

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
TOKEN = "xoxb-of-acme"
ACME = Installed(
    TeamId("TACME"), UserId("UBOT2"), "BBOT2", TOKEN, "A1", "E1", "https://acme.slack.com"
)
NOW = datetime.now(UTC).replace(microsecond=0)
TEAMS = (TeamId("THOME"), ACME.team)


def installations_of(database: Database, *keys: str) -> StoredInstallations:
    return StoredInstallations(database, TokenSeal(keys or (NEW,)))


async def _kinds(database: Database) -> list[str]:
    return [row.kind for row in await StoredAuditReader(database).entries()]


async def _rows(database: Database, wanted: sa.Select[tuple[str]]) -> list[str]:
    async with reading(database) as connection:
        return list(await connection.scalars(wanted))


async def test_a_workspace_is_installed_found_installed_again_and_removed(
    database: Database,
) -> None:
    store = installations_of(database)
    assert await store.find(ACME.team) is None

    await store.save(ACME, "U1")
    assert await store.find(ACME.team) == replace(ACME, revision=1)
    assert await store.find(TeamId("TNONE")) is None
    await store.save(replace(ACME, token="xoxb-second"), "U1")
    assert [(each.token, each.revision) for each in await store.all()] == [("xoxb-second", 2)]
    assert await store.revisions() == {ACME.team: 2}

    assert not await store.remove(ACME.team, "token_revoked", 1)  # of an older installation
    assert await store.remove(ACME.team, "app_uninstalled", 2)
    assert not await store.remove(ACME.team, "app_uninstalled")
    assert (await store.find(ACME.team), await store.all(), await store.revisions()) == (
        None,
        [],
        {},
    )
    await store.save(ACME, "U1")
    assert await store.revisions() == {ACME.team: 4}
    assert await _kinds(database) == ["workspace.installed"] * 2 + [
        "workspace.removed",
        "workspace.installed",
    ]


async def test_no_token_is_stored_in_clear_or_opens_in_another_workspace(
    database: Database,
) -> None:
    store = installations_of(database)
    await store.save(ACME, "U1")
    (sealed,) = await _rows(database, sa.select(table.c.sealed))
    assert "xoxb" not in sealed

    await store.save(replace(ACME, team=TeamId("TEVIL"), token="xoxb-evil"), "U9")

    async def swap(connection: AsyncConnection) -> None:
        await connection.execute(
            table.update().where(table.c.team == "TEVIL").values(sealed=sealed)
        )

    await database.transact(swap)
    assert await store.find(TeamId("TEVIL")) is None
    assert [each.team for each in await store.all()] == [ACME.team]


async def test_keys_are_rotated_and_the_old_one_retired(database: Database) -> None:
    await installations_of(database, OLD).save(ACME, "U1")
    assert await installations_of(database, NEW).find(ACME.team) is None
    both = installations_of(database, NEW, OLD)
    assert (await both.all())[0].token == TOKEN
    assert (await both.reseal(), await both.reseal()) == (1, 0)
    assert (await installations_of(database, NEW).all())[0].token == TOKEN
    assert await installations_of(database, OLD).reseal() == 0


async def test_an_install_state_works_once_within_ten_minutes_and_is_stored_as_a_digest(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = StoredOAuthStates(database)
    state, late = await states.issue(), await states.issue()
    assert state is not None
    assert late is not None
    assert state not in str(await _rows(database, sa.select(oauth_states.c.digest)))
    answers = await asyncio.gather(*(states.consume(state) for _ in range(5)))
    assert sorted(answers) == [False] * 4 + [True]
    assert not await states.consume("\ud800" + "(" * 1_500)

    async def age(connection: AsyncConnection) -> None:
        earlier = datetime.now(UTC) - timedelta(seconds=601)
        await connection.execute(oauth_states.update().values(issued_at=earlier))

    await database.transact(age)
    assert not await states.consume(late)

    monkeypatch.setattr(installations, "MOST_STATES", 1)
    assert await states.issue() is not None
    assert await states.issue() is None
    await database.transact(age)
    assert await states.issue() is not None  # what is too old makes room


def _ask(team: TeamId) -> Ask:
    place = Place(team, ChannelId("C1"), MessageTs("1.1"))
    return Ask(place, MessageTs("1.1"), Person(team, UserId("U1")), Redacted("why?"))


async def _live(database: Database, team: TeamId) -> None:
    """The same channel, person and times in each workspace: an answer, a card, a question that waits."""
    sessions, asked = StoredSessions(database), _ask(team)
    session = await sessions.begin_turn(asked, "incident", NOW)
    await sessions.finish_turn(asked.turn_id, TurnState.ANSWERED, [], [], NOW)
    feedback = StoredFeedback(database)
    await feedback.vote(asked.turn_id, asked.asker, Vote.DOWN, f"{team}:v")
    await feedback.explain(asked.turn_id, asked.asker, Redacted(f"bad in {team}"), f"{team}:w")
    waiting = replace(asked, ts=MessageTs("2.2"))
    await stand_in_line(database, waiting)
    row = replace(
        proposal(created_at=NOW, expires_at=NOW + timedelta(hours=1)),
        id=ProposalId(f"p_{team}"),
        place=asked.place,
    )
    event = AuditEvent(AuditKind.PROPOSAL_CREATED, "U1", {}, session.id, f"{team}:p")
    await StoredProposals(database).create(row, event)
    tenant = HOME if team == TEAMS[0] else team
    entry = replace(ROUND, session_id=session.id, turn_id=TurnId(asked.turn_id), tenant=tenant)
    await StoredLedger(database).record(replace(entry, cost_usd_micros=1_000))


@pytest.mark.parametrize(("whose", "seen"), [(HOME, 0), (ACME.team, 1), ("TNONE", None), (None, 2)])
@pytest.mark.parametrize("installed", [True, False], ids=["installed", "removed since"])
async def test_admins_see_only_their_own_workspaces_figures(
    database: Database, whose: TenantScope, seen: int | None, installed: bool
) -> None:
    await installations_of(database).save(ACME, "U1")
    for team in TEAMS:
        await _live(database, team)
    await installations_of(database).remove(ACME.team, "app_uninstalled", 0 if installed else 1)
    own = {0: TEAMS[:1], 1: TEAMS[1:], 2: TEAMS, None: ()}[seen]

    overview = StoredOverview(database, whose)
    for read in (overview.talks, overview.open_proposals, overview.under_way):
        assert {row.place.team for row in await read(10)} == set(own)
    ledger = StoredLedger(database, whose)
    counted = TEAMS if whose == HOME else own  # the limit of all is home's
    assert (await ledger.today()).spent_usd_micros == 1_000 * len(counted)
    assert len(await ledger.report(None, "session")) == len(own)
    feedback = StoredFeedback(database, scope=whose)
    assert [row.answers for row in await feedback.judged(7)] == [len(own)] * bool(own)
    assert {each.reason for each in await feedback.reasons(9)} == {f"bad in {t}" for t in own}
    told = await StoredAuditReader(database, whose).entries(newest=True, limit=100)
    assert {row.session_id.split(":")[1] for row in told if row.session_id} == set(own)


async def test_limits_people_and_channels_belong_to_one_workspace(
    database: Database,
) -> None:
    ledger = StoredLedger(database)
    acme = replace(HELD, tenant=ACME.team, session_id=SessionId(f"session:{ACME.team}:C1:1.1"))
    await ledger.record(replace(ROUND, tenant=ACME.team, turn_id=TurnId("t2"), channel_id="C1"))
    limits = BudgetLimits(workspace_daily_usd_micros=2_000)

    refused = await ledger.reserve(acme, limits)
    assert refused is not None
    assert (refused.limit, refused.spent) == (Limit.WORKSPACE, 1_500)
    at_home = BudgetLimits(
        workspace_daily_usd_micros=2_000, channel_daily_usd_micros=2_000, user_hourly_questions=1
    )
    assert await ledger.reserve(HELD, at_home) is None


async def test_rows_of_a_workspace_are_not_mixed_up_with_an_id_of_the_same_prefix(
    database: Database,
) -> None:
    await installations_of(database).save(ACME, "U1")
    longer = TeamId(f"{ACME.team}2")
    await StoredAudit(database).append(
        AuditEvent(AuditKind.TURN_STARTED, "U1", {}, f"session:{longer}:C1:1.1")
    )
    assert [r for r in await StoredAuditReader(database, ACME.team).entries() if r.session_id] == []
    home = await StoredAuditReader(database, HOME).entries()
    assert [row.session_id for row in home if row.session_id] == [f"session:{longer}:C1:1.1"]


async def _rows_of(database: Database, person: str) -> set[str]:
    """The tables and workspaces of what an export holds, the audit log's among it."""
    records = SubjectRecords(database, Subject(person=person))
    rows = [row async for row in records.rows()]
    told = await StoredAuditReader(database).entries(of=records.audit_rows)
    return {f"{row['table']} {team}" for row in rows for team in TEAMS if team in str(row)} | {
        f"audit {team}" for row in told for team in TEAMS if team in row.session_id
    }


@pytest.mark.parametrize(("person", "own"), [("U1", 0), ("TACME/U1", 1)])
async def test_an_export_and_a_deletion_distinguish_equal_ids_of_two_workspaces(
    database: Database, person: str, own: int
) -> None:
    await installations_of(database).save(ACME, "U0")
    mine, other = TEAMS[own], ("TACME/U1", "U1")[own]
    for team in TEAMS:
        await _live(database, team)
        linked = KnownCaller(UserId(f"@{team}"), CallerKind.PERSON, "Mira", account=f"{team}/U1")
        await StoredCallers(database).create(linked, None, "cli:me")
    async with writing(database) as connection:
        asked = {"asker_user": "U1", "decided_by": "U1", "state": "rejected"}
        for team in TEAMS:
            of_team = proposals.update().where(proposals.c.team == team)
            await connection.execute(of_team.values(asked | {"asker_team": team}))
        await connection.execute(spending.update().values(user_id="U1"))
        await connection.execute(waiting_turns.delete())
    before = await _rows_of(database, other)
    assert {name.split()[1] for name in before} == {TEAMS[1 - own]}
    assert {"turns", "proposals", "feedback", "spending", "callers", "audit"} <= {
        name.split()[0] for name in before
    }

    records = SubjectRecords(database, Subject(person=person))
    await records.check_workspace()
    assert _ask(TEAMS[1 - own]).turn_id in (await records.user())[1]
    assert await erase(database, by="cli:me", reason="asked", person=person, named=True) > 0
    await records.delete()

    assert await _rows_of(database, other) == before
    assert await _rows_of(database, person) == set()
    assert mine not in {row.session_id.split(":")[1] for row in await _unerased(database)}


async def _unerased(database: Database) -> list[AuditEntry]:
    rows = await StoredAuditReader(database).entries()
    return [row for row in rows if row.session_id and row.actor]


async def test_a_person_of_an_unknown_workspace_is_refused(database: Database) -> None:
    with pytest.raises(UnknownWorkspace, match=r"TNONE never installed .* bare id: U1"):
        await SubjectRecords(database, Subject(person="TNONE/U1")).check_workspace()
    await SubjectRecords(database, Subject(person="@idp/U1")).check_workspace()


async def test_an_equal_channel_id_elsewhere_reads_neither_incidents_nor_alerts(
    database: Database,
) -> None:
    """Home's past is not another workspace's, nor the other way round."""
    await installations_of(database).save(ACME, "U0")
    sessions = StoredSessions(database)
    for team in TEAMS:
        asked = _ask(team)
        await sessions.begin_turn(asked, "incident", NOW)
        seen = Evidence(1, "c1", "core__get_logs", "2 lines", True, 1, False, "{}")
        answer = Message(role=Role.ASSISTANT, text=f"sequential quotes of {team}")
        await sessions.finish_turn(asked.turn_id, TurnState.ANSWERED, [answer], [seen], NOW)
    history = StoredIncidents(database)
    for team, channel in zip(TEAMS, ("C1", scope_of("C1", ACME.team)), strict=True):
        found = await history.search(
            IncidentQuery(text="sequential quotes", channel=channel, limit=9)
        )
        assert [each.resolution for each in found] == [f"sequential quotes of {team}"]

    (thread,) = await file(StoredAlerts(database), alert("latency"))
    async with writing(database) as connection:
        here = alert_threads.update().where(alert_threads.c.id == thread.id)
        await connection.execute(here.values(channel="C1", thread_ts="1.1"))
    stores = SimpleNamespace(
        proposals=StoredProposals(database), sessions=sessions, alerts=StoredAlerts(database)
    )
    tenancy = SimpleNamespace(alerts=[RULE], tenant_of=lambda team: tenant_of(team, TEAMS[0]))
    base = cast("Base", SimpleNamespace(stores=stores, live_config=tenancy))
    named = Channel("incident", UNMATCHED)
    directory = cast("Directory", SimpleNamespace(on_call_notes=_no_rota))
    noted = [
        len(await _notes(base, by_id, directory, _ask(team).place, named, "")) for team in TEAMS
    ]
    assert noted == [1, 0]
    of_acme = SubjectRecords(database, Subject(session="session:TACME:C1:1.1"))
    assert "alert_threads" not in {row["table"] async for row in of_acme.rows()}


async def _no_rota(_place: Place, _question: str) -> list[str]:
    return []
