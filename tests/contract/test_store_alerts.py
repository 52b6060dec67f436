"""The incident of an alert, on both databases: one thread, one investigation, for any filer."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.alerts import (
    Alert,
    AlertLimits,
    AlertRule,
    AlertState,
    AlertThread,
    FiledAlert,
    Investigation,
)
from bot.domain.ids import ALERTS, ChannelId, MessageTs, Place, TeamId
from bot.ports.alerts import AlertClaim
from bot.store.alert_tables import alert_threads
from bot.store.alerts import StoredAlerts
from bot.store.database import Database
from bot.store.ledger import StoredLedger
from bot.store.retention import StoredRetention
from bot.store.tables import audit
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import ROUND

__all__ = ["database", "database_url", "other"]

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
RULE = AlertRule("latency", ChannelId("C1"))
LIMITS = AlertLimits()
FIRING, RESOLVED = AlertState.FIRING, AlertState.RESOLVED


def alert(
    name: str = "a",
    state: AlertState = FIRING,
    minute: int = 0,
    *,
    group: str = "",
    product: str = "checkout",
    rule: AlertRule = RULE,
) -> FiledAlert:
    told = Alert(
        source="alertmanager",
        group=group or name,
        id=name,
        state=state,
        title=f"{name} of {product} is high",
        labels={"alertname": name},
        changed_at=AT + timedelta(minutes=minute),
    )
    return FiledAlert(told, rule, product, f"key of {name}", f"group of {group or name}")


async def file(
    store: StoredAlerts, *found: FiledAlert, limits: AlertLimits = LIMITS
) -> Sequence[AlertThread]:
    await store.file(found, limits)
    return await everything(store)


async def everything(store: StoredAlerts) -> Sequence[AlertThread]:
    """All threads that there is something to show of, oldest first."""
    claims = [await store.claim(each, 0.0) for each in await store.due(1_000)]
    return sorted((c.thread for c in claims if c), key=lambda each: each.opened_at)


async def claimed(store: StoredAlerts) -> AlertClaim:
    (due,) = await store.due(10)
    claim = await store.claim(due, 60.0)
    assert claim is not None
    return claim


async def later(database: Database, seconds: float) -> None:
    """So much time passes."""
    names = ("opened_at", "heard_at", "resolved_at", "due_at")
    gone_us = int(seconds * 1_000_000)
    literal = {n: sa.type_coerce(alert_threads.c[n], sa.BigInteger) - gone_us for n in names}

    async def work(connection: AsyncConnection) -> None:
        await connection.execute(alert_threads.update().values(literal))

    await database.transact(work)


async def test_a_hundred_repeats_are_one_thread_and_one_investigation(database: Database) -> None:
    store = StoredAlerts(database)
    for _ in range(100):
        await store.file([alert()], LIMITS)

    (thread,) = await everything(store)

    assert (thread.firing, thread.total, thread.repeats) == (1, 1, 99)
    assert (thread.investigation, thread.left_out) == (Investigation.DUE, "")
    assert [(each.title, each.fires) for each in thread.listed] == [("a of checkout is high", 1)]


async def test_alerts_of_a_group_and_other_alerts_of_the_product_share_a_thread(
    database: Database,
) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a", group="g"), alert("b", group="g")], LIMITS)
    (thread,) = await file(store, alert("c"), alert("d", group="h"))
    assert thread.total == 4


async def test_another_product_or_rule_has_its_own_thread(database: Database) -> None:
    store = StoredAlerts(database)
    another = replace(RULE, name="errors")
    threads = await file(
        store, alert("a"), alert("b", product="payments"), alert("c", rule=another)
    )
    assert {(each.rule, each.product) for each in threads} == {
        ("latency", "checkout"),
        ("latency", "payments"),
        ("errors", "checkout"),
    }


async def test_an_alert_after_the_window_opens_a_new_thread_unless_it_is_of_the_group(
    database: Database,
) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a", group="g")], LIMITS)
    await later(database, RULE.join_s + 1)
    first, second = await file(store, alert("b", group="g"), alert("c"))
    assert (first.total, second.total) == (2, 1)


async def test_an_alert_of_two_receivers_counts_once_and_ends_with_either(
    database: Database,
) -> None:
    """Each receiver of Alertmanager has a group key of its own."""
    store = StoredAlerts(database)
    await store.file([alert("a", group="g")], LIMITS)
    (both,) = await file(store, alert("a", group="h"), alert("b", group="h"))
    assert (both.total, both.firing, both.listed[0].fires) == (2, 2, 1)

    await store.file([alert("a", RESOLVED, 5, group="g")], LIMITS)
    (over,) = await file(store, alert("b", RESOLVED, 6, group="h"))

    assert (over.total, over.firing) == (2, 0)
    assert over.resolved_at is not None


@pytest.mark.parametrize("receiver", ["g", "h"])
async def test_a_new_alert_joins_the_thread_of_its_group_in_any_order(
    database: Database, receiver: str
) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a", group="g")], LIMITS)
    await store.file([alert("a", group="h")], LIMITS)
    await later(database, RULE.join_s + 1)
    (thread,) = await file(store, alert("b", group=receiver), alert("a", group=receiver))
    assert thread.total == 2


async def test_an_alert_of_an_earlier_release_is_known_and_ends(database: Database) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a")], LIMITS)
    now = replace(alert("a", RESOLVED, 5), key="a new key", former_key="key of a")
    (thread,) = await file(store, now)
    assert (thread.total, thread.firing) == (1, 0)


async def test_a_deleted_thread_message_is_replaced_by_another_one(
    database: Database,
) -> None:
    store = StoredAlerts(database)
    (thread,) = await file(store, alert())
    await store.opened(thread.id, MessageTs("1.1"))
    await store.noted(thread.id, MessageTs("1.2"))
    await store.lost(thread.id, MessageTs("1.1"))
    (gone,) = await file(store, alert("b"))
    assert (gone.thread_ts, gone.note_ts) == (None, None)

    assert await store.opened(thread.id, MessageTs("2.1")) == "2.1"
    await store.lost(thread.id, MessageTs("1.1"))
    assert await store.opened(thread.id, MessageTs("3.1")) == "2.1"


async def test_an_incident_is_resolved_with_its_last_alert_and_may_fire_again(
    database: Database,
) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a"), alert("b")], LIMITS)
    (one,) = await file(store, alert("a", RESOLVED, 5))
    assert (one.firing, one.resolved_at, one.ends) == (1, None, 0)
    (over,) = await file(store, alert("b", RESOLVED, 6))
    assert (over.firing, over.ends) == (0, 1)
    assert over.resolved_at is not None

    (again,) = await file(store, alert("a", FIRING, 20))

    assert (again.id, again.firing, again.resolved_at, again.ends) == (over.id, 1, None, 1)
    assert again.listed[0].fires == 2


async def test_an_alert_that_fires_again_much_later_is_another_incident(database: Database) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a")], LIMITS)
    await store.file([alert("a", RESOLVED, 5)], LIMITS)
    await later(database, RULE.rejoin_s + 1)
    assert len(await file(store, alert("a", FIRING, 300))) == 2


async def test_an_alert_that_fires_for_a_day_stays_one_incident(database: Database) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a")], LIMITS)
    await later(database, 24 * 3_600)
    assert len(await file(store, alert("a"))) == 1


@pytest.mark.parametrize(
    ("state", "minute", "firing"),
    [(RESOLVED, -5, 1), (RESOLVED, 0, 0), (FIRING, -5, 1)],
    ids=["an end told late", "an end at once", "a start told late"],
)
async def test_a_later_alert_state_is_kept(
    database: Database, state: AlertState, minute: int, firing: int
) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a")], LIMITS)
    (thread,) = await file(store, alert("a", state, minute))
    assert (thread.firing, thread.listed[0].fires) == (firing, 1)


async def test_an_old_start_does_not_undo_an_end(database: Database) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a"), alert("b")], LIMITS)
    await store.file([alert("a", RESOLVED, 5)], LIMITS)
    (thread,) = await file(store, alert("a", FIRING, 0))
    assert thread.firing == 1


async def test_the_end_of_an_unknown_alert_opens_nothing(database: Database) -> None:
    assert await file(StoredAlerts(database), alert("a", RESOLVED)) == []


async def test_replicas_that_get_an_alert_at_once_open_one_thread(
    database: Database, other: Database
) -> None:
    stores = [StoredAlerts(database), StoredAlerts(other)] * 4
    await asyncio.gather(*(store.file([alert(f"a{n}")], LIMITS) for n, store in enumerate(stores)))
    (thread,) = await everything(stores[0])
    assert thread.total == 8
    assert await opened_rows(database) == 1


async def opened_rows(database: Database) -> int:
    async def work(connection: AsyncConnection) -> int:
        rows = sa.select(sa.func.count()).select_from(audit).where(audit.c.kind == "alert.opened")
        return await connection.scalar(rows) or 0

    return await database.fetch(work)


async def test_a_storm_of_many_products_fills_some_threads_and_one_for_the_rest(
    database: Database,
) -> None:
    store = StoredAlerts(database)
    limits = AlertLimits(threads_per_hour=5, investigations_per_hour=3)
    storm = [alert(f"a{n}", product=f"product-{n}") for n in range(200)]

    threads = await file(store, *storm, limits=limits)
    threads = await file(store, *storm, limits=limits)

    rest = [each for each in threads if each.is_overflow]
    assert [(each.total, each.product) for each in rest] == [(195, "")]
    assert len(threads) == 6
    states = [each.investigation for each in threads]
    assert states.count(Investigation.DUE) == 3
    assert {each.left_out for each in threads} == {"", "alerts may start 3 investigations an hour"}


async def test_a_storm_of_one_product_is_one_thread(database: Database) -> None:
    store = StoredAlerts(database)
    (thread,) = await file(store, *(alert(f"a{n}") for n in range(1_000)))
    assert (thread.firing, len(thread.listed)) == (1_000, 10)


async def test_alerts_have_their_own_daily_limit(database: Database) -> None:
    store, limits = StoredAlerts(database), AlertLimits(daily_usd_micros=1_500)
    ledger = StoredLedger(database)
    await ledger.record(replace(ROUND, round=1))  # a person's
    await store.file([alert("a")], limits)
    await ledger.record(replace(ROUND, round=2, user=ALERTS))
    threads = await file(store, alert("b", product="payments"), limits=limits)
    told = {(each.product, each.left_out) for each in threads}
    assert told == {("checkout", ""), ("payments", "today's budget for alerts is spent")}


async def test_alert_texts_are_deleted_with_the_messages(database: Database) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a")], LIMITS)
    await StoredRetention(database).drop_messages(60.0)
    (before,) = await everything(store)
    await later(database, 61.0)
    await StoredRetention(database).drop_messages(60.0)
    (after,) = await everything(store)
    assert [(each.title, each.labels) for each in before.listed] == [
        ("a of checkout is high", {"alertname": "a"})
    ]
    assert [(each.title, each.labels) for each in after.listed] == [("", {})]


async def test_one_caller_shows_an_incident_at_a_time_and_later_changes_follow(
    database: Database, other: Database
) -> None:
    store, second = StoredAlerts(database), StoredAlerts(other)
    await store.file([alert("a")], LIMITS)
    claim = await claimed(store)
    assert await second.claim(claim.thread.id, 60.0) is None

    await second.file([alert("b")], LIMITS)
    await store.showed(claim, 0.0)

    again = await claimed(second)
    assert (again.thread.total, again.tries) == (2, 1)
    await second.showed(again, 0.0)
    assert await store.due(10) == []


async def test_a_caller_that_dies_while_showing_is_replaced(database: Database) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a")], LIMITS)
    await claimed(store)
    assert await store.due(10) == []
    await later(database, 61.0)
    assert (await claimed(store)).tries == 2


async def test_the_first_message_stays_the_threads_and_is_found_by_its_place(
    database: Database,
) -> None:
    store = StoredAlerts(database)
    await store.file([alert("a")], LIMITS)
    thread = (await claimed(store)).thread.id
    assert await store.opened(thread, MessageTs("1.1")) == "1.1"
    assert await store.opened(thread, MessageTs("2.2")) == "1.1"
    await store.noted(thread, MessageTs("1.3"))
    await store.begun(thread)

    found = await store.at(Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1")))

    assert found is not None
    assert (found.thread_ts, found.note_ts) == ("1.1", "1.3")
    assert found.investigation is Investigation.BEGUN
    assert await store.at(Place(TeamId("T1"), ChannelId("C1"), MessageTs("2.2"))) is None
