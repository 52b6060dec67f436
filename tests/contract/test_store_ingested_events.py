"""What EventStore promises, and the deploys that are read from it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.ingested_event import IngestedEvent
from bot.store.database import Database
from bot.store.incidents import StoredIncidents
from bot.store.ingested_events import StoredDeploys, StoredEvents, kind_of
from tests.fixtures_database import database, database_url
from tests.fixtures_stores import Stores, stores
from tools.capabilities import Deploy, IncidentQuery, Interval
from tools.errors import CapabilityUnavailable

__all__ = ["database", "database_url", "stores"]

NOW = datetime(2026, 4, 7, 14, 31, tzinfo=UTC)
HOUR = Interval(NOW, NOW + timedelta(hours=1))
DEPLOY = IngestedEvent(
    id="1",
    source="ci",
    type="koder.deploy.succeeded",
    product="checkout",
    at=NOW,
    data={
        "version": "1.4.2",
        "status": "ok",
        "commit": "abc123",
        "actor": "ci",
        "host": "h1",
        "previous_version": "1.4.1",
        "duration_s": 12,
    },
)


async def test_an_event_is_added_once(stores: Stores) -> None:
    assert await stores.events.add([DEPLOY])
    assert not await stores.events.add([replace(DEPLOY, product="search")])


@pytest.mark.parametrize("change", [{"id": "2"}, {"source": "other"}])
async def test_another_id_or_source_is_another_event(
    stores: Stores, change: dict[str, str]
) -> None:
    await stores.events.add([DEPLOY])
    assert await stores.events.add([replace(DEPLOY, **change)])  # type: ignore[arg-type]


def state(step: str, minute: int) -> IngestedEvent:
    """An object with repeated reports, as Flux sends them."""
    at = NOW + timedelta(minutes=minute)
    return replace(
        DEPLOY, id=f"K/shop/web/{step}/{at.isoformat()}", at=at, course="K/shop/web", step=step
    )


async def test_a_repeated_step_of_a_rollout_is_not_new(
    stores: Stores,
) -> None:
    told = [state("v1", 0), state("v1", 1), state("v2", 2), state("v2", 90), state("v1", 91)]

    assert [await stores.events.add([each]) for each in told] == [1, 0, 1, 0, 1]
    assert not await stores.events.add([state("v2", 2)])  # a late repetition


async def test_a_rollout_is_not_mixed_up_with_one_of_the_same_prefix(stores: Stores) -> None:
    await stores.events.add([state("v1", 0)])
    other = replace(state("v1", 1), id="K/shop/web-2/v1/x", course="K/shop/web-2")

    assert await stores.events.add([other])


async def test_each_event_of_a_batch_is_added_once(stores: Stores) -> None:
    await stores.events.add([replace(DEPLOY, id="3")])
    batch = [replace(DEPLOY, id=str(number % 400)) for number in range(1_000)]
    course = [state("v1", 0), state("v1", 1), state("v2", 2)]

    assert await stores.events.add([*batch, *course]) == 399 + 2
    assert await stores.events.add(batch) == 0
    assert await stores.events.add([]) == 0


async def test_an_incident_with_an_unstorable_id_can_be_found(
    database: Database,
) -> None:
    odd = replace(DEPLOY, type="koder.incident.opened", id="a\x00b", source="s\x00")
    told = replace(odd, data={"title": "the queue is full"})

    assert await StoredEvents(database).add([told, told]) == 1
    query = IncidentQuery("queue", "")
    assert [each.title for each in await StoredIncidents(database).search(query)] == [
        "the queue is full"
    ]


async def test_each_incident_of_a_batch_can_be_found(database: Database) -> None:
    opened = replace(DEPLOY, type="koder.incident.opened")
    batch = [replace(opened, id=f"i{n}", data={"title": f"queue {n} is full"}) for n in range(450)]
    await StoredEvents(database).add([*batch, *batch])

    query = IncidentQuery("queue 449", "")
    assert [each.title for each in await StoredIncidents(database).search(query)][:1] == [
        "queue 449 is full"
    ]


async def test_a_large_batch_needs_few_transactions(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0
    transact = Database.transact

    async def counted(self: Database, *args: Any, **kwargs: Any) -> Any:
        nonlocal begun
        begun += 1
        return await transact(self, *args, **kwargs)

    monkeypatch.setattr(Database, "transact", counted)
    events = [replace(DEPLOY, id=str(number)) for number in range(6_000)]

    assert await StoredEvents(database).add(events) == 6_000
    assert begun == 30


async def test_an_event_added_twenty_times_at_once_is_new_once(stores: Stores) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(stores.events.add([DEPLOY])) for _ in range(20)]
    assert [task.result() for task in tasks].count(1) == 1


async def test_data_that_a_database_cannot_store_is_harmless(stores: Stores) -> None:
    assert await stores.events.add([replace(DEPLOY, data={"a\x00": ["\ud800", "\x00"]})])


async def test_a_deploy_is_read_completely(database: Database) -> None:
    await StoredEvents(database).add([DEPLOY])
    assert list(await StoredDeploys(database).between("checkout", HOUR)) == [
        Deploy("checkout", "1.4.2", NOW, "ci", "h1", "abc123", "ok", "1.4.1", 12.0)
    ]


async def test_a_deploy_with_few_fields_is_kept(database: Database) -> None:
    await StoredEvents(database).add([replace(DEPLOY, type="deploy", data={"actor": ["odd"]})])
    assert list(await StoredDeploys(database).between("checkout", HOUR)) == [
        Deploy("checkout", "unknown", NOW)
    ]


async def test_deploys_of_a_half_open_interval_are_returned_newest_first(
    database: Database,
) -> None:
    offsets = {"before": -1, "start": 0, "middle": 30, "last": 3599, "end": 3600}
    for name, offset_s in offsets.items():
        at = NOW + timedelta(seconds=offset_s)
        await StoredEvents(database).add([replace(DEPLOY, id=name, at=at, data={"version": name})])
    found = await StoredDeploys(database).between("checkout", HOUR)
    assert [deploy.version for deploy in found] == ["last", "middle", "start"]


async def test_deploys_of_one_product_or_all_are_returned(database: Database) -> None:
    await StoredEvents(database).add([DEPLOY])
    await StoredEvents(database).add([replace(DEPLOY, id="2", product="search")])
    deploys = StoredDeploys(database)
    assert [d.product for d in await deploys.between("search", HOUR)] == ["search"]
    assert len(await deploys.between("*", HOUR)) == 2


async def test_other_events_are_not_deploys(database: Database) -> None:
    await StoredEvents(database).add([replace(DEPLOY, type="koder.incident.opened")])
    assert list(await StoredDeploys(database).between("*", HOUR)) == []


@pytest.mark.parametrize(
    ("said", "type_", "status"),
    [
        ("ok", "deploy", "ok"),
        ("succeeded", "deploy", "ok"),
        ("FAILED", "deploy", "failed"),
        ("error", "deploy", "failed"),
        ("rolled-back", "deploy", "rolled_back"),
        ("in_progress", "deploy", "running"),
        (None, "koder.deploy.failed", "failed"),
        (None, "koder.deploy.rollback", "rolled_back"),
        (None, "koder.deploy.started", "running"),
        (None, "koder.deploy.succeeded", "ok"),
    ],
)
async def test_a_status_is_one_of_four_words(
    database: Database, said: str | None, type_: str, status: str
) -> None:
    await StoredEvents(database).add([replace(DEPLOY, type=type_, data={"status": said})])
    (deploy,) = await StoredDeploys(database).between("checkout", HOUR)
    assert deploy.status == status


@pytest.mark.parametrize(
    ("event_type", "kind"),
    [
        ("deploy", "deploy"),
        ("koder.deploy.succeeded", "deploy"),
        ("dev.cdevents.service.deployed.0.1.1", "deploy"),
        ("koder.incident.opened", "incident"),
        ("koder.finding.raised", "finding"),
        ("koder.deployer", "other"),
        ("", "other"),
    ],
)
def test_the_kind_follows_from_the_type(event_type: str, kind: str) -> None:
    assert kind_of(event_type) == kind


async def test_an_unreadable_store_is_unavailable() -> None:
    url = "postgresql+asyncpg://u:p@/none?host=/nonexistent"
    nowhere = await Database.open(url, patience_s=(0.0, 0.0))
    with pytest.raises(CapabilityUnavailable):
        await StoredDeploys(nowhere).between("*", HOUR)
    await nowhere.close()
