"""What channels are called, kept: the same in memory, on SQLite and on PostgreSQL."""

import pytest

from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.slack.api.channels import NameStore
from bot.store.channel_names import StoredNames
from bot.store.database import Database
from tests.fakes.channel_names import MemoryNames
from tests.fixtures_database import database, database_url

__all__ = ["database", "database_url"]

HERE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1"))
IN_ANOTHER_THREAD = Place(TeamId("T1"), ChannelId("C1"), MessageTs("2.2"))
ELSEWHERE = Place(TeamId("T2"), ChannelId("C1"), MessageTs("1.1"))


@pytest.fixture(params=["memory", "database"])
async def names(request: pytest.FixtureRequest, database: Database) -> NameStore:
    kinds: dict[str, NameStore] = {"memory": MemoryNames(), "database": StoredNames(database)}
    return kinds[request.param]


async def test_an_unread_name_is_unknown(names: NameStore) -> None:
    assert await names.get(HERE) is None


async def test_a_name_is_stored_for_its_whole_channel_only(names: NameStore) -> None:
    assert await names.keep(HERE, "incident-checkout", None)
    kept = await names.get(IN_ANOTHER_THREAD)
    assert kept is not None
    assert kept.name == "incident-checkout"
    assert 0 <= kept.age_s < 60
    assert await names.get(ELSEWHERE) is None


async def test_a_newer_reading_replaces_the_one_it_was_made_for(names: NameStore) -> None:
    await names.keep(HERE, "old", None)
    assert await names.keep(HERE, "new", await names.get(HERE))
    kept = await names.get(HERE)
    assert kept is not None
    assert kept.name == "new"


async def test_a_reading_that_a_rename_overtook_is_discarded(names: NameStore) -> None:
    await names.keep(HERE, "old", None)
    asked_for = await names.get(HERE)
    await names.forget(HERE)
    assert not await names.keep(HERE, "old", asked_for)
    kept = await names.get(HERE)
    assert kept is not None
    assert kept.name == ""


async def test_a_first_reading_that_a_rename_overtook_is_discarded(names: NameStore) -> None:
    asked_for = await names.get(HERE)
    await names.forget(HERE)
    assert not await names.keep(HERE, "old", asked_for)


async def test_the_last_readings_of_several_channels_are_returned_at_once(
    database: Database,
) -> None:
    names = StoredNames(database)
    await names.keep(HERE, "incident-checkout", None)
    await names.keep(ELSEWHERE, "theirs", None)
    await names.forget(ELSEWHERE)
    unread = Place(TeamId("T1"), ChannelId("C9"), MessageTs("1.1"))

    told = await names.last_read([HERE, IN_ANOTHER_THREAD, ELSEWHERE, unread])

    assert told == {
        HERE: "incident-checkout",
        IN_ANOTHER_THREAD: "incident-checkout",
        ELSEWHERE: "",
        unread: "",
    }
    assert await names.last_read([]) == {}
