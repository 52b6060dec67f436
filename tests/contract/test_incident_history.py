"""Recorded incidents and those in either database are searched in the same way, by any text."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.ingested_event import IngestedEvent
from adapters.llm.messages import Message, Role, ToolCall, ToolResult
from adapters.recorded.simulator.history import RecordedHistory
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask, TurnState
from bot.domain.turn_events import Evidence
from bot.store.database import Database
from bot.store.incident_rows import keep, of_event
from bot.store.incidents import StoredIncidents
from bot.store.ingested_events import StoredEvents
from bot.store.sessions import StoredSessions
from bot.store.tables import incidents
from tests.fixtures_database import database, database_url, new_database
from tests.held_connection import writing
from tools.capabilities import IncidentHistory, IncidentQuery, Interval, PastIncident
from tools.errors import CapabilityUnavailable, InvalidArguments
from tools.redactor import Redacted

__all__ = ["database", "database_url"]

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)


def days_ago(days: int) -> datetime:
    return NOW - timedelta(days=days)


PAST = [
    PastIncident(
        "pager:1", "checkout p99 above 2 s", days_ago(200), days_ago(199), "checkout", "error",
        "Rolled back the deploys of v1.2.3; the payment-service was innocent.",
    ),
    PastIncident(
        "pager:2", "payments connection pool exhausted", days_ago(60), None, "payments", "warn"
    ),
    PastIncident(
        "pager:3", "checkout déploiement échoué", days_ago(30), days_ago(30), "checkout", "warn",
        "La migration bloquait.",
    ),
    PastIncident("pager:4", "数据库连接超时", days_ago(10), days_ago(10), "orders-db", "error"),
    PastIncident("pager:5", "checkout caches cold", days_ago(1), days_ago(1), "check.out", "info"),
]  # fmt: skip


def opened(one: PastIncident) -> IngestedEvent:
    data = {"title": one.title, "severity": one.severity, "resolution": one.resolution}
    return IngestedEvent(
        one.id.split(":")[1], "pager", "com.pager.incident.opened", one.product, one.opened_at, data
    )


def closed(one: PastIncident, at: datetime) -> IngestedEvent:
    return IngestedEvent(
        f"{one.id}-closed",
        "pager",
        "com.pager.incident.closed",
        one.product,
        at,
        {"incident_id": one.id.split(":")[1]},
    )


async def fill(database: Database) -> None:
    events = StoredEvents(database)
    for one in PAST:
        await events.add([opened(one)])
        if one.closed_at is not None:
            await events.add([closed(one, one.closed_at)])


@pytest.fixture(params=["recorded", "sqlite", "postgresql"])
async def history(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[IncidentHistory]:
    if request.param == "recorded":
        yield RecordedHistory(PAST)
        return
    async with new_database(request.param, tmp_path) as url:
        database = await Database.open(url)
        await fill(database)
        yield StoredIncidents(database)
        await database.close()


async def ids(history: IncidentHistory, text: str, **more: object) -> list[str]:
    found = await history.search(IncidentQuery(text, "C1", **more))  # type: ignore[arg-type]
    return [one.id.removeprefix("pager:") for one in found]


async def test_an_incident_is_returned_complete(history: IncidentHistory) -> None:
    assert list(await history.search(IncidentQuery("p99 rollback deploy", "C1"))) == [PAST[0]]


async def test_a_word_finds_its_other_forms(history: IncidentHistory) -> None:
    expected = {
        "deploy": ["1"],  # deploys
        "CHECKOUT cached": ["5", "3", "1"],
        "pools": ["2"],
        "payment-service": ["1", "2"],
        "v1.2.3": ["1"],
        "deploiement": ["3"],
        "连接": ["4"],
        "数据库 超时": ["4"],
        "exhausted pool of payments": ["2", "1"],
        "zzyzx": [],
    }
    assert {text: await ids(history, text) for text in expected} == expected


PLAIN = (
    'pool"', "pool'", "pool AND", "AND pool OR", "NEAR(pool", "pool*", "words:pool", "-pool",
    "^pool", "(pool", "pool & | !", "pool\\", "pool\x00", "pool \ud800", "{pool}", "%pool_",
    "'; DROP TABLE incidents; -- pool", "pool " * 150,
)  # fmt: skip


async def test_any_text_is_searched_as_plain_words(history: IncidentHistory) -> None:
    assert {text: await ids(history, text) for text in PLAIN} == {text: ["2"] for text in PLAIN}


async def test_a_search_without_words_is_refused(history: IncidentHistory) -> None:
    for text in ("", "  ", "???", "the of and", "\x00"):
        with pytest.raises(InvalidArguments, match="name words"):
            await ids(history, text)


async def test_a_product_filter_finds_only_that_product(history: IncidentHistory) -> None:
    expected = {"checkout": ["3", "1"], "check.out": ["5"], "payments": [], "check": []}
    found = {product: await ids(history, "checkout", product=product) for product in expected}
    assert found == expected


async def test_a_range_includes_its_start_and_excludes_its_end(history: IncidentHistory) -> None:
    assert await ids(history, "checkout", interval=Interval(days_ago(30), days_ago(1))) == ["3"]
    assert await ids(history, "checkout", interval=Interval(days_ago(3000), days_ago(30))) == ["1"]


async def test_the_limit_keeps_the_best_matches(history: IncidentHistory) -> None:
    assert await ids(history, "checkout p99", limit=1) == ["1"]


async def test_a_rare_word_counts_more_than_a_newer_incident(history: IncidentHistory) -> None:
    assert (await ids(history, "checkout v1"))[0] == "1"


async def test_words_of_every_frequency_find_the_best_among_many(database: Database) -> None:
    await fill(database)
    events = StoredEvents(database)
    # The newest 250 hold one of two words each; "brownout" is in none of the newest 500.
    titles = ["checkout error timeout brownout"] * 100 + ["checkout error timeout"] * 250
    titles += ["checkout error", "checkout timeout"] * 125
    await events.add(
        [
            replace(opened(PAST[0]), id=f"n{number}", data={"title": title})
            for number, title in enumerate(titles)
        ]
    )
    both = {"title": "unknown", "resolution": "pgbouncer timeout"}
    await events.add([replace(opened(PAST[0]), id="body", data=both)])
    await events.add([replace(opened(PAST[0]), id="title", data={"title": "pgbouncer"})])
    history = StoredIncidents(database)

    assert (await ids(history, "checkout exhausted pool"))[0] == "2"
    assert await ids(history, "timeout error", limit=2) == ["n349", "n348"]
    assert len(await ids(history, "exhausted brownout", limit=3)) == 3
    assert len(await ids(history, "brownout", limit=5)) == 5
    old = await ids(history, "brownout timeout", limit=25)
    assert len(old) == 25
    assert {one for one in old if int(one.removeprefix("n")) >= 100} == set()
    mixed = await ids(history, "exhausted timeout", limit=3)
    assert mixed[0] == "2"
    assert len(mixed) == 3
    assert await ids(history, "pgbouncer timeout", limit=1) == ["title"]
    assert len(await ids(history, "timeout", product="checkout", limit=5)) == 5
    assert await ids(history, "timeout", product="payments") == []


async def test_a_finding_is_found_with_its_incident(database: Database) -> None:
    await fill(database)
    finding = IngestedEvent(
        "f1",
        "pager",
        "com.pager.finding.added",
        "payments",
        NOW,
        {"incident_id": "2", "text": "pgbouncer ran out of file descriptors"},
    )
    await StoredEvents(database).add([finding])
    (found,) = await StoredIncidents(database).search(IncidentQuery("pgbouncer", "C1"))
    assert found == PAST[1]


async def test_the_newest_of_many_findings_are_found_with_their_titles(
    database: Database,
) -> None:
    await StoredEvents(database).add([opened(PAST[1])])
    for number in range(12):
        words = " ".join(f"word{number}x{n}" for n in range(300))
        data: dict[str, JsonValue] = {"incident_id": "2", "text": words}
        await StoredEvents(database).add(
            [IngestedEvent(f"f{number}", "pager", "com.pager.finding.added", "web", NOW, data)]
        )
    history = StoredIncidents(database)

    assert await ids(history, "word11x299") == await ids(history, "word6x299") == ["2"]
    assert await ids(history, "word0x299") == []
    assert await ids(history, "pool exhausted", product="payments") == ["2"]
    assert await ids(history, "pool exhausted", product="web") == ["2"]


class _DeletedMeanwhile:
    """A connection; after its first statement another one deletes all incidents."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.dialect = connection.dialect
        self._connection = connection
        self._left = iter([incidents.delete()])

    async def execute(self, *asked: Any) -> Any:
        found = await self._connection.execute(*asked)
        for each in self._left:
            await self._connection.execute(each)
        return found


async def test_an_incident_deleted_during_a_finding_is_created_again(
    database: Database,
) -> None:
    await StoredEvents(database).add([opened(PAST[1])])

    async with writing(database) as connection:
        incident = of_event(opened(PAST[1]))
        await keep(_DeletedMeanwhile(connection), [incident])  # type: ignore[arg-type]

    assert await ids(StoredIncidents(database), "pool") == ["2"]


async def test_the_same_event_twice_is_one_incident(database: Database) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(StoredEvents(database).add([opened(PAST[1])]))
    assert await ids(StoredIncidents(database), "pool") == ["2"]


async def test_a_closed_incident_that_opens_late_stays_closed(database: Database) -> None:
    events = StoredEvents(database)
    await events.add([closed(PAST[1], NOW)])
    await events.add([opened(PAST[1])])
    (found,) = await StoredIncidents(database).search(IncidentQuery("pool", "C1"))
    assert found == replace(PAST[1], closed_at=NOW)


async def test_an_unreachable_store_is_unavailable(tmp_path: Path) -> None:
    async with new_database("sqlite", tmp_path, migrated=False) as url:
        empty = await Database.open(url)
        with pytest.raises(CapabilityUnavailable):
            await StoredIncidents(empty).search(IncidentQuery("pool", "C1"))
        await empty.close()


async def a_session(
    database: Database,
    state: TurnState,
    channel: str = "C1",
    ts: str = "1.1",
    product: str = "pricing",
) -> None:
    place = Place(TeamId("T1"), ChannelId(channel), MessageTs(ts))
    person = Person(TeamId("T1"), UserId("U1"))
    ask = Ask(place, MessageTs(ts), person, Redacted("why is  checkout slow?"), "incident-checkout")
    arguments = json.dumps({"product": product})
    said = (
        Message(Role.ASSISTANT, "", (ToolCall("c1", "core__get_logs", arguments),)),
        Message(Role.TOOL, tool_result=ToolResult("c1", "core__get_logs", "{}", True)),
        Message(Role.ASSISTANT, "The quotes are sequential [1]."),
    )
    seen = Evidence(1, "c1", "core__get_logs", "2 lines", True, 1, False, "{}")
    sessions = StoredSessions(database)
    await sessions.begin_turn(ask, "incident-checkout", NOW)
    await sessions.finish_turn(ask.turn_id, state, said, [seen], NOW)


async def test_an_answered_session_is_found_in_its_channel(database: Database) -> None:
    await a_session(database, TurnState.ANSWERED)
    history = StoredIncidents(database)
    query = IncidentQuery("sequential quotes", "C1", product="pricing")
    (found,) = await history.search(query)
    assert (found.title, found.resolution, found.product, found.closed_at) == (
        "why is checkout slow?",
        "The quotes are sequential [1].",
        "pricing",
        NOW,
    )
    assert found.is_own_answer
    assert await history.search(replace(query, channel="C2")) == []
    assert await history.search(replace(query, channel="")) == []


@pytest.mark.parametrize("letter", ["p", "\u65e5", "\U0001f4a9"])
async def test_an_invented_product_does_not_prevent_storing_a_turn(
    database: Database, letter: str
) -> None:
    name = "".join(f"{letter}{number}" for number in range(2_000))
    await a_session(database, TurnState.ANSWERED, product=name)

    found = await StoredIncidents(database).search(IncidentQuery("sequential quotes", "C1"))
    assert [each.title for each in found] == ["why is checkout slow?"]


async def test_earlier_answers_fill_at_most_half_of_the_results(database: Database) -> None:
    await fill(database)
    for number in range(12):
        await a_session(database, TurnState.ANSWERED, ts=f"{number}.5")
    history = StoredIncidents(database)

    people_told = len(await history.search(IncidentQuery("checkout", "C9")))
    for limit in (2, 3, 9):
        found = await history.search(IncidentQuery("checkout", "C1", limit=limit))
        kept = min(people_told, limit - limit // 2)
        assert [one.is_own_answer for one in found] == [False] * kept + [True] * (limit - kept)


@pytest.mark.parametrize("state", [TurnState.FAILED, TurnState.STOPPED])
async def test_a_session_without_an_answer_is_not_found(
    database: Database, state: TurnState
) -> None:
    await a_session(database, state)
    assert await ids(StoredIncidents(database), "sequential quotes checkout") == []


async def test_the_bots_own_findings_come_before_recorded_incidents() -> None:
    own = PastIncident("kortex:s1", "checkout slow", NOW)
    both = RecordedHistory(PAST, beside=RecordedHistory([own]))
    assert await ids(both, "checkout", limit=2) == ["kortex:s1", "5"]


async def test_the_bots_own_threads_leave_room_for_recorded_incidents() -> None:
    own = [PastIncident(f"kortex:s{number}", "checkout slow", NOW) for number in range(20)]
    both = RecordedHistory(PAST, beside=RecordedHistory(own))
    assert "5" in await ids(both, "checkout", limit=4)
