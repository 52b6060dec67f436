"""kill -9 between an alert's row and the answer that begins: one thread, one investigation, one answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.demo.workspace.seeds import CHECKOUT
from bot.demo.workspace.timeline import Message
from bot.domain.alerts import Alert, AlertLimits, AlertRule, AlertState, FiledAlert
from bot.domain.ids import ChannelId
from bot.store.alerts import StoredAlerts
from tests.fakes.model_server import Round
from tests.scenario.durability.replica import TIMES
from tests.scenario.durability.world import Asked, World, world_on

RULE = AlertRule("latency", ChannelId(CHECKOUT))
QUESTION = "What is wrong with checkout since"
QUICK = replace(TIMES, card_call_s=0.5, tick_s=0.2, gather_s=0.1)
Reach = Callable[[World], Awaitable[None]]


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(getattr(request, "param", "sqlite"), tmp_path) as made:
        made.scripts[QUESTION] = [Round(text=("The pool is exhausted.",))]
        yield made


async def fires(world: World, name: str = "a") -> None:
    """What a replica has done when it answers the alert's sender."""
    at = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
    told = Alert("alertmanager", name, name, AlertState.FIRING, f"{name} is high", {}, at)
    filed = FiledAlert(told, RULE, "checkout", f"key {name}", f"group {name}")
    await StoredAlerts(world.database).file([filed], AlertLimits())


async def _before_the_post(world: World) -> None:
    hold = world.gates.hold("slack POST chat.postMessage before")
    await fires(world)
    await hold.wait()
    hold.lost = True


async def _posted_and_not_stored(world: World) -> None:
    hold = world.gates.hold("slack POST chat.postMessage after")
    await fires(world)
    await hold.wait()


async def _before_the_answers_placeholder(world: World) -> None:
    hold = world.gates.hold("slack POST chat.postMessage before", _in_thread)
    await fires(world)
    await hold.wait()
    hold.lost = True


def _in_thread(sent: bytes) -> bool:
    return b"kortex_answer" in sent


POINTS = {
    "before the post": _before_the_post,
    "posted, not stored": _posted_and_not_stored,
    "before the answer's placeholder": _before_the_answers_placeholder,
}


@pytest.mark.parametrize("reach", POINTS.values(), ids=POINTS.keys())
async def test_a_restart_after_a_kill_finishes_the_alert(world: World, reach: Reach) -> None:
    first = await world.start(QUICK)
    await reach(world)
    await world.kill(first)
    world.open()
    await world.start(QUICK)
    await assert_one_of_each(world)


@pytest.mark.parametrize("world", ["postgresql"], indirect=True)
async def test_replicas_that_get_an_alert_at_once_open_one_thread(world: World) -> None:
    await world.start(QUICK)
    await world.start(QUICK)
    await fires(world)
    await fires(world, "b")
    await assert_one_of_each(world)


async def assert_one_of_each(world: World) -> None:
    opened = await world.workspace.wait_for(lambda: openings(world), 40.0)
    asked = Asked(opened[0].ts, opened[0].ts)
    await world.shows(asked, "The pool is exhausted.")
    await world.settled()

    assert len(openings(world)) == 1
    assert len(world.answers(asked)) == 1
    audit = await world.audit()
    assert (audit["alert.opened"], audit["turn.started"], audit["turn.ended"]) == (1, 1, 1)


def openings(world: World) -> list[Message]:
    bot = world.workspace.app.bot_user_id
    return [m for m in world.workspace.messages(CHECKOUT) if m.user == bot and not m.thread_ts]
