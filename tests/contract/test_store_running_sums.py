"""The spending of a day and of a thread is the sum of its rounds, from any writer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from bot.app.rules import engine_database
from bot.store import schema
from bot.store.address import addressed
from bot.store.allowance import COUNTED
from bot.store.database import Database
from bot.store.dialect import INSERT
from bot.store.ledger import StoredLedger
from bot.store.ledger_tables import session_tokens, spending, spent_days
from bot.store.tables import sessions
from tests.fixtures_database import database_url, empty_url, new_database
from tests.fixtures_migrations import migrated_to
from tests.held_connection import writing

__all__ = ["database_url", "empty_url"]

BEFORE = "0025"  # the newest revision that knew nothing of it
KEY: Final = ("turn_id", "round", "provider")
MIDNIGHT: Final = datetime(2026, 11, 23, tzinfo=UTC)
TICK: Final = timedelta(microseconds=1)
REST: Final = {
    **dict.fromkeys(("session_id", "user_id", "channel", "model", "purpose"), ""),
    **dict.fromkeys(("input_uncached", "cache_read", "cache_write", "output", "duration_ms"), 1),
}
ROUND: Final = {**REST, "turn_id": "t", "round": 1, "provider": "p", "channel_id": "C1"}

Row = Mapping[str, Any]
Change = Callable[[sa.Connection], object]

keys = st.fixed_dictionaries(
    {"turn_id": st.sampled_from(["a", "b"]), "round": st.integers(1, 3), "provider": st.just("p")}
)
costs = st.none() | st.integers(0, 10**12)
values = st.fixed_dictionaries(
    {
        "at": st.sampled_from([MIDNIGHT - TICK, MIDNIGHT, MIDNIGHT + timedelta(days=1) - TICK]),
        "tenant": st.sampled_from(["", "T1"]),
        "channel_id": st.sampled_from(["", "C1", "C2"]),
        "cost_usd_micros": costs,
        "counted_usd_micros": costs,
        "session_id": st.sampled_from(["", "s1", "s2"]),
        "output": st.integers(0, 10**12),
    }
)


def added(key: Row, of: Row) -> Change:
    """As a round is recorded: again, it changes nothing."""

    def change(connection: sa.Connection) -> None:
        insert = INSERT[connection.dialect.name](spending).values({**REST, **key, **of})
        connection.execute(insert.on_conflict_do_nothing(index_elements=KEY))

    return change


def _of(key: Row) -> sa.ColumnElement[bool]:
    return sa.and_(*(spending.c[name] == value for name, value in key.items()))


def removed(key: Row) -> Change:
    return lambda connection: connection.execute(spending.delete().where(_of(key)))


def changed(key: Row, of: Row) -> Change:
    return lambda connection: connection.execute(spending.update().where(_of(key)).values(of))


def unnamed(key: Row) -> Change:
    """As a person's rows are that are deleted."""
    return changed(key, {"user_id": "", "session_id": ""})


changes = st.lists(
    st.one_of(
        st.builds(added, keys, values),
        st.builds(removed, keys),
        st.builds(changed, keys, values),
        st.builds(unnamed, keys),
    ),
    max_size=30,
)


def _cost_and_counted(rows: sa.Result[*tuple[Any, ...]]) -> tuple[Counter[Any], Counter[Any]]:
    """By day, workspace and channel, without zeros."""
    cost, counted = Counter[Any](), Counter[Any]()
    for at, tenant, channel, of_round, of_limit in rows:
        key = (at.date(), tenant, channel)
        cost[key] += of_round
        counted[key] += of_limit
    return +cost, +counted


def _by_rounds(connection: sa.Connection) -> tuple[Counter[Any], Counter[Any]]:
    cost = sa.func.coalesce(spending.c.cost_usd_micros, 0)
    found = sa.select(spending.c.at, spending.c.tenant, spending.c.channel_id, cost, COUNTED)
    return _cost_and_counted(connection.execute(found))


def _by_days(connection: sa.Connection) -> tuple[Counter[Any], Counter[Any]]:
    return _cost_and_counted(connection.execute(sa.select(spent_days)))


def _tokens_of(connection: sa.Connection, asked: sa.Select[*tuple[Any, ...]]) -> Mapping[str, int]:
    """By thread, without zeros."""
    return {name: int(tokens) for name, tokens in connection.execute(asked) if tokens}


def _threads_by_rounds(connection: sa.Connection) -> Mapping[str, int]:
    mine = spending.c
    took = sa.func.sum(mine.input_uncached + mine.cache_read + mine.cache_write + mine.output)
    named = sa.select(mine.session_id, took).where(mine.session_id != "")
    return _tokens_of(connection, named.group_by(mine.session_id))


def _by_threads(connection: sa.Connection) -> Mapping[str, int]:
    return _tokens_of(connection, sa.select(session_tokens))


@pytest.mark.may_block_the_loop
async def test_the_sums_equal_the_rounds_after_any_changes(database_url: str) -> None:
    engine = sa.create_engine(engine_database(database_url))

    @given(changes)
    def holds(made: list[Change]) -> None:
        with engine.connect() as connection:  # rolled back: the next one begins with nothing
            for change in made:
                change(connection)
            assert _by_days(connection) == _by_rounds(connection)
            assert _by_threads(connection) == _threads_by_rounds(connection)

    await asyncio.to_thread(holds)
    engine.dispose()


async def _recorded(url: str, *rounds: Row) -> None:
    database = await Database.open(url)
    async with writing(database) as connection:
        for values in rounds:
            await connection.execute(spending.insert().values({**ROUND, **values}))
    await database.close()


async def test_the_day_of_the_upgrade_includes_earlier_spending(
    empty_url: str, tmp_path: Path
) -> None:
    await migrated_to(BEFORE, empty_url, tmp_path)
    now = datetime.now(UTC)
    await _recorded(
        empty_url,
        {"round": 1, "at": now, "cost_usd_micros": 5},
        {"round": 2, "at": now, "cost_usd_micros": None, "counted_usd_micros": 70},
        {"round": 3, "at": now, "cost_usd_micros": 900, "tenant": "T1", "channel_id": "C2"},
        {"round": 4, "at": now - timedelta(days=1), "cost_usd_micros": 10_000},
    )

    await schema.migrate(empty_url)
    await _recorded(empty_url, {"round": 5, "at": now, "cost_usd_micros": 20})

    database = await Database.open(empty_url)
    today = await StoredLedger(database).today()
    of_t1 = await StoredLedger(database, "T1").today()
    await database.close()
    assert (today.spent_usd_micros, today.used_usd_micros) == (925, 995)
    assert of_t1.used_usd_micros == 900


def _session(name: str, active_at: datetime) -> sa.Insert:
    of = {"id": name, "active_at": active_at, "created_at": active_at}
    rest = dict.fromkeys(("team", "channel", "thread_ts", "name"), "")
    return sessions.insert().values({**rest, **of})


async def test_threads_of_the_last_month_keep_counting_after_the_upgrade(
    empty_url: str, tmp_path: Path
) -> None:
    await migrated_to("0028", empty_url, tmp_path)
    now = datetime.now(UTC)
    database = await Database.open(empty_url)
    async with writing(database) as connection:
        for name, active_at in (("s1", now), ("s2", now - timedelta(days=40))):
            await connection.execute(_session(name, active_at))
    await database.close()
    rounds = [{"round": n, "session_id": f"s{n % 2 + 1}", "at": now} for n in range(1, 5)]
    await _recorded(empty_url, *rounds)

    await schema.migrate(empty_url)
    await _recorded(
        empty_url,
        {"round": 5, "session_id": "s1", "at": now, "output": 20},
        {"round": 6, "session_id": "s2", "at": now, "output": 30},
    )

    engine = sa.create_engine(engine_database(empty_url))

    def counted() -> Mapping[str, int]:
        with engine.connect() as connection:
            return _by_threads(connection)

    assert await asyncio.to_thread(counted) == {"s1": 2 * 4 + 23, "s2": 33}
    engine.dispose()


async def _waits_for_a_table(connection: AsyncConnection) -> None:
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL")
    while not await connection.scalar(waiting):  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.01)


@asynccontextmanager
async def _upgraded_meanwhile(
    revision: str, folder: Path, *then: str
) -> AsyncIterator[AsyncConnection]:
    """A PostgreSQL that was upgraded while a round was being written, which did `then` at last."""
    async with new_database("postgresql", folder, migrated=False) as url:
        await migrated_to(revision, url, folder)
        engine = create_async_engine(addressed(url))
        now = datetime.now(UTC)
        async with engine.begin() as connection:
            await connection.execute(_session("s1", now))
        values = {**ROUND, "session_id": "s1", "at": now, "cost_usd_micros": 5}
        async with (
            engine.connect() as looks,
            engine.begin() as writes,
            asyncio.TaskGroup() as group,
        ):
            await writes.execute(spending.insert().values(values))
            upgrade = group.create_task(schema.migrate(url))
            async with asyncio.timeout(10):
                await _waits_for_a_table(looks)
            for statement in then:
                await writes.execute(sa.text(statement))
            await writes.commit()
            assert await upgrade == schema.head()
        async with engine.connect() as connection:
            yield connection
        await engine.dispose()


async def test_a_round_written_during_the_upgrade_counts_once(
    tmp_path: Path,
) -> None:
    async with _upgraded_meanwhile(BEFORE, tmp_path) as connection:
        assert await connection.run_sync(_by_days) == await connection.run_sync(_by_rounds)
        threads = await connection.run_sync(_threads_by_rounds)
        assert await connection.run_sync(_by_threads) == threads == {"s1": 4}
        assert await connection.scalar(sa.select(spent_days.c.cost_usd_micros)) == 5


async def test_an_upgrade_and_a_turn_that_wait_for_each_other_both_finish(
    tmp_path: Path,
) -> None:
    then = ("SET LOCAL deadlock_timeout = '60s'", "SELECT count(*) FROM turns")  # not this one
    # The next one takes turns, then spending.
    async with _upgraded_meanwhile("0024", tmp_path, *then) as connection:
        assert await connection.scalar(sa.select(spent_days.c.cost_usd_micros)) == 5
