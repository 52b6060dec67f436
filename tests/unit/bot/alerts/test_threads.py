"""Alert threads over rows: after any failure, one message, one turn, the rest later."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.alerts.threads import AlertThreads
from bot.domain.alerts import Alert, AlertLimits, AlertRule, AlertState, FiledAlert
from bot.domain.ids import ALERTS, ChannelId, TeamId
from bot.ports.failures import StorageUnavailable, SurfaceGone
from bot.slack.api.web_api import Unreachable
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.alert_posts import AlertPosts
from bot.store.alert_tables import alert_threads
from bot.store.alerts import StoredAlerts
from bot.store.database import Database
from tests.fakes.redactor import FakeRedactor
from tests.fakes.slack_web import FakeSlackWeb, Lost
from tests.fakes.workflows import RecordingWorkflows
from tests.fixtures_database import new_database
from tests.fixtures_slack import QUICK, running_beside

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
RULE = AlertRule("latency", ChannelId("C1"))
FIRING, RESOLVED = AlertState.FIRING, AlertState.RESOLVED


@dataclass
class Bot:
    """One replica over a database and a Slack."""

    database: Database
    scheduler: EditScheduler
    web: FakeSlackWeb = field(default_factory=FakeSlackWeb)
    workflows: RecordingWorkflows = field(default_factory=RecordingWorkflows)

    @property
    def store(self) -> StoredAlerts:
        return StoredAlerts(self.database)

    async def fires(
        self, name: str = "a", state: AlertState = FIRING, minute: int = 0, limits: int = 10
    ) -> None:
        at = AT.replace(minute=minute)
        told = Alert("alertmanager", name, name, state, f"{name} is slow", {"job": name}, at)
        filed = FiledAlert(told, RULE, "checkout", f"key {name}", f"group {name}")
        await self.store.file([filed], AlertLimits(investigations_per_hour=limits))

    async def shows(self) -> None:
        async def lapse(connection: AsyncConnection) -> None:
            await connection.execute(alert_threads.update().values(due_at=None))

        await self.database.transact(lapse)
        posts = AlertPosts(Outbox(self.web, self.scheduler, bot_user_id="UBOT"))
        threads = AlertThreads(
            self.store, posts, self.workflows, TeamId("T1"), FakeRedactor(), gather_s=0.0
        )
        await threads.run()


@pytest.fixture
async def bot(tmp_path: Path) -> AsyncIterator[Bot]:
    async with (
        new_database("sqlite", tmp_path) as url,
        running_beside(EditScheduler(QUICK)) as scheduler,
    ):
        database = await Database.open(url)
        yield Bot(database, scheduler)
        await database.close()


async def test_an_alert_is_posted_asked_in_its_thread_and_left_alone(bot: Bot) -> None:
    await bot.fires()
    await bot.shows()
    await bot.shows()

    (message,) = bot.web.messages.values()
    (ask,) = bot.workflows.turns.values()
    assert (ask.place.channel, ask.place.thread_ts, ask.ts) == ("C1", message["ts"], message["ts"])
    assert (ask.asker.user, ask.text) == (
        ALERTS,
        "What is wrong with checkout since 2026-11-22T12:00Z?",
    )
    assert bot.web.count("chat.update") == 0
    assert bot.web.count("conversations.history") == 0


FAULTS: dict[str, Callable[[Bot], None]] = {
    "refused": lambda bot: bot.web.faults["chat.postMessage"].append(
        Unreachable("chat.postMessage", "down")
    ),
    "its answer is lost": lambda bot: bot.web.faults["chat.postMessage"].append(
        Lost(Unreachable("chat.postMessage", "lost"))
    ),
    "the start fails": lambda bot: bot.workflows.failures.append(StorageUnavailable("full")),
    "looked for in vain": lambda bot: bot.web.faults["chat.postMessage"].extend(
        [Lost(Unreachable("chat.postMessage", "lost")), Unreachable("chat.postMessage", "down")]
    ),
}


@pytest.mark.parametrize("spoil", FAULTS.values(), ids=FAULTS.keys())
async def test_a_failure_leads_to_one_message_and_one_turn(
    bot: Bot, spoil: Callable[[Bot], None]
) -> None:
    spoil(bot)
    await bot.fires()
    for _ in range(3):
        await bot.shows()

    assert len(bot.web.messages) == 1
    (ask,) = bot.workflows.turns.values()
    assert ask.place.thread_ts in bot.web.messages


async def test_a_frozen_process_deletes_its_duplicate_message(bot: Bot) -> None:
    await bot.fires()
    bot.web.gates["chat.postMessage"] = asyncio.Event()
    frozen = asyncio.create_task(bot.shows())
    await bot.web.until("chat.postMessage", begun=True)
    gate = bot.web.gates.pop("chat.postMessage")
    await bot.shows()
    gate.set()
    await frozen

    assert len(bot.web.messages) == 1
    (ask,) = bot.workflows.turns.values()
    assert ask.place.thread_ts in bot.web.messages


async def test_repeats_are_counted_in_the_message_and_ends_posted_in_one_line(bot: Bot) -> None:
    await bot.fires()
    await bot.shows()
    await bot.fires()
    await bot.fires()
    await bot.shows()
    assert "Repeated twice" in str(bot.web.messages)

    await bot.fires(state=RESOLVED, minute=30)
    await bot.shows()
    opened, line = bot.web.messages.values()
    assert opened["text"] == "✅ checkout: a is slow"
    assert str(line["text"]).startswith("✅ The alert is resolved since")
    assert line["thread_ts"] == opened["ts"]

    await bot.fires(minute=40)
    await bot.shows()

    opened, line = bot.web.messages.values()
    assert opened["text"] == "🔴 checkout: a is slow"
    assert line["text"] == "🔴 1 alert firing again. Resolved once before."
    assert len(bot.workflows.turns) == 1


async def test_a_line_with_a_lost_reply_is_found_again(bot: Bot) -> None:
    await bot.fires()
    await bot.shows()
    await bot.fires(state=RESOLVED, minute=30)
    bot.web.faults["chat.postMessage"].append(Lost(Unreachable("chat.postMessage", "lost")))
    await bot.shows()
    await bot.shows()
    assert len(bot.web.messages) == 2


async def test_an_alert_over_the_limit_is_posted_and_not_asked(bot: Bot) -> None:
    await bot.fires(limits=0)
    await bot.shows()
    assert "Not investigated: alerts may start 0 investigations an hour" in str(bot.web.messages)
    assert bot.workflows.turns == {}


async def test_a_closed_channel_is_retried_when_it_opens(bot: Bot) -> None:
    bot.web.faults["chat.postMessage"].append(SurfaceGone("not_in_channel"))
    await bot.fires()
    await bot.shows()
    assert bot.web.messages == {}
    await bot.shows()
    assert len(bot.workflows.turns) == 1


async def test_a_deleted_message_is_posted_again_with_the_next_alert(bot: Bot) -> None:
    await bot.fires()
    await bot.shows()
    bot.web.messages.clear()
    await bot.fires("b")
    await bot.shows()
    await bot.shows()

    (message,) = bot.web.messages.values()
    assert "2 alerts firing" in str(message)
    assert len(bot.workflows.turns) == 1
    await bot.fires(state=RESOLVED, minute=30)
    await bot.fires("b", RESOLVED, minute=30)
    await bot.shows()
    opened, line = bot.web.messages.values()
    assert line["thread_ts"] == opened["ts"] == message["ts"]


async def test_a_deleted_message_is_not_posted_again_for_a_resolved_alert(bot: Bot) -> None:
    await bot.fires()
    await bot.shows()
    bot.web.messages.clear()
    await bot.fires(state=RESOLVED, minute=30)
    await bot.shows()
    assert bot.web.messages == {}
    assert await bot.store.due(10) == []


async def test_a_reposted_message_with_a_lost_reply_is_found(bot: Bot) -> None:
    await bot.fires()
    await bot.shows()
    bot.web.messages.clear()
    bot.web.faults["chat.postMessage"].append(Lost(Unreachable("chat.postMessage", "lost")))
    await bot.fires("b")
    await bot.shows()
    await bot.shows()
    assert len(bot.web.messages) == 1


async def test_a_storm_is_one_edit(bot: Bot) -> None:
    await bot.fires("a0")
    await bot.shows()
    for n in range(1, 40):
        await bot.fires(f"a{n}")
    await bot.shows()
    assert bot.web.count("chat.update") == 1
    (message,) = bot.web.messages.values()
    assert "40 alerts firing" in str(message)
    assert "and 30 more" in str(message)
