"""Answers where Slack allows little: no message is waited for, and no word is lost or said twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from bot.domain.ids import MessageTs, TurnId
from bot.domain.turn_events import TextDelta
from bot.ports.failures import StorageUnavailable, SurfaceFailed
from bot.slack.api.web_api import RateLimited, Unreachable
from bot.slack.delivery.outbox import Outbox, Patience
from bot.slack.delivery.pacing import Rates, Urgency
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.render import render
from bot.slack.views.surface import SlackSurface
from tests.fakes.slack_web import FakeSlackWeb, Lost
from tests.fixtures_slack import ASK, QUICK, running_beside
from tests.golden.slack_views import EVIDENCE, LONG, OUTCOMES, finished, view

SHORT = finished(text="The pool is exhausted [1].", outcomes=OUTCOMES, evidence=EVIDENCE)
FINAL = finished(text=LONG, outcomes=OUTCOMES, evidence=EVIDENCE)
WHOLE = [part.text for part in render(view([FINAL]))]
NO_EDITS = replace(QUICK, edit_burst=1, edits_per_minute=1e-6)
NO_POSTS = replace(QUICK, post_burst=1, posts_per_s=1e-6, placeholder_s=0.0)


@dataclass
class World:
    """Slack, the pace of it, and where answers were kept to stand."""

    scheduler: EditScheduler
    slack: FakeSlackWeb = field(default_factory=FakeSlackWeb)
    kept: list[MessageTs] = field(default_factory=list)
    kept_fails: bool = False

    def process(self, scheduler: EditScheduler | None = None) -> SlackSurface:
        """A process that remembers nothing."""
        outbox = Outbox(self.slack, scheduler or self.scheduler, bot_user_id="UBOT")
        return SlackSurface(outbox, patience=Patience(backoff_s=0.001), stands=self._stands)

    async def _stands(self, _turn: TurnId, ts: MessageTs) -> None:
        if self.kept_fails:
            raise StorageUnavailable("locked")
        self.kept.append(ts)

    @property
    def at(self) -> list[str]:
        return sorted(self.slack.messages)


@asynccontextmanager
async def crowded(rates: Rates) -> AsyncIterator[World]:
    async with running_beside(EditScheduler(rates)) as scheduler, asyncio.timeout(10):
        yield World(scheduler)


@asynccontextmanager
async def without_edits() -> AsyncIterator[World]:
    async with crowded(NO_EDITS) as world:
        await world.scheduler.edit_permit()
        yield world


@asynccontextmanager
async def without_posts() -> AsyncIterator[World]:
    async with crowded(NO_POSTS) as world:
        await world.scheduler.post_permit(ASK.place.channel)
        yield world


async def test_a_final_that_would_wait_for_its_edit_replaces_the_message() -> None:
    async with without_edits() as world:
        surface = world.process()
        before = await surface.open_answer(ASK)
        await surface.stream(ASK, before).finish(FINAL)

    assert world.slack.texts() == WHOLE
    assert (world.slack.count("chat.update"), before in world.at) == (0, False)
    assert world.kept == world.at[:1]


@pytest.mark.parametrize("killed_at", ["chat.postMessage", "chat.delete"])
async def test_a_successor_in_the_middle_of_a_replacement_shows_it_once(killed_at: str) -> None:
    async with without_edits() as world:
        surface = world.process()
        before = await surface.open_answer(ASK)
        begun = world.slack.begun[killed_at]
        world.slack.gates[killed_at] = asyncio.Event()
        dying = asyncio.create_task(surface.stream(ASK, before).finish(FINAL))
        await world.slack.until(killed_at, begun + 1, begun=True)
        dying.cancel()
        await asyncio.wait({dying})
        del world.slack.gates[killed_at]

        async with running_beside(EditScheduler(QUICK)) as scheduler:
            await world.process(scheduler).stream(ASK, before).finish(FINAL)

    assert world.slack.texts() == WHOLE


async def test_a_successor_after_a_replacement_finds_the_new_message() -> None:
    async with without_edits() as world:
        surface = world.process()
        before = await surface.open_answer(ASK)
        await surface.stream(ASK, before).finish(FINAL)
        done = world.at

        async with running_beside(EditScheduler(QUICK)) as scheduler:
            await world.process(scheduler).stream(ASK, before).finish(FINAL)

    assert (world.slack.texts(), len(world.at)) == (WHOLE, len(done))


FAULTS = [
    Unreachable("any", "cut"),
    Lost(Unreachable("any", "answer lost")),
    RateLimited("chat.postMessage", 0.01),
]


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_a_replacement_with_an_unknown_outcome_happens_once(fault: Exception | Lost) -> None:
    async with without_edits() as world:
        surface = world.process()
        before = await surface.open_answer(ASK)
        world.slack.faults["chat.postMessage"].append(fault)
        await surface.stream(ASK, before).finish(FINAL)

    assert world.slack.texts() == WHOLE


async def test_a_message_that_cannot_be_removed_says_where_the_answer_is() -> None:
    async with crowded(replace(NO_EDITS, edits_per_minute=600, sooner_s=0.0)) as world:
        surface = world.process()
        before = await surface.open_answer(ASK)
        await world.scheduler.edit_permit()
        world.slack.faults["chat.delete"].append(SurfaceFailed("no", retryable=False))
        await surface.stream(ASK, before).finish(SHORT)

    first, last = world.slack.texts()
    assert (first, "pool is exhausted" in last) == ("(answered below)", True)
    assert world.slack.messages[before]["blocks"] == []


async def test_a_turn_does_not_wait_for_its_placeholder() -> None:
    async with without_posts() as world:
        surface = world.process()
        opened = await surface.open_answer(ASK)
        stream = surface.stream(ASK, opened)
        stream.feed(TextDelta("The pool is exhausted.\n\nIt was halved."))
        assert (opened, world.slack.texts()) == ("", [])
        await stream.aclose()


async def test_an_answer_without_a_message_is_shown_as_soon_as_a_post_is_allowed() -> None:
    soon = replace(NO_POSTS, posts_per_s=20.0)
    async with crowded(soon) as world:
        await world.scheduler.post_permit(ASK.place.channel)
        surface = world.process()
        stream = surface.stream(ASK, await surface.open_answer(ASK))
        stream.feed(TextDelta("The pool is exhausted.\n\nIt was halved."))
        await world.slack.until("chat.postMessage")
        shown = world.slack.texts()
        await stream.finish(SHORT)

    assert [text.split("\n")[0] for text in shown] == ["The pool is exhausted."]
    assert world.slack.texts()[0].startswith("The pool is exhausted [1].")
    assert len(world.at) == 1
    assert world.kept == world.at


async def test_a_successor_of_an_unrecorded_answer_continues_its_message() -> None:
    async with crowded(replace(NO_POSTS, posts_per_s=20.0)) as world:
        await world.scheduler.post_permit(ASK.place.channel)
        surface = world.process()
        opened = await surface.open_answer(ASK)
        stream = surface.stream(ASK, opened)
        stream.feed(TextDelta("The pool is exhausted.\n\nIt was halved."))
        await world.slack.until("chat.postMessage")
        await stream.aclose()
        async with running_beside(EditScheduler(QUICK)) as scheduler:
            await world.process(scheduler).stream(ASK, opened).finish(SHORT)

    assert opened == ""
    assert (len(world.at), world.kept) == (1, world.at)
    assert world.slack.texts()[0].startswith("The pool is exhausted [1].")


async def test_a_final_without_an_earlier_message_is_one_message() -> None:
    async with crowded(replace(NO_POSTS, posts_per_s=20.0)) as world:
        await world.scheduler.post_permit(ASK.place.channel)
        surface = world.process()
        stream = surface.stream(ASK, await surface.open_answer(ASK))
        await stream.finish(SHORT)

    assert (len(world.at), world.slack.count("chat.postMessage")) == (1, 1)
    assert world.slack.count("chat.update") == 0


async def test_an_answer_that_moves_elsewhere_before_it_appeared_is_not_posted() -> None:
    async with without_posts() as world:
        surface = world.process()
        stream = surface.stream(ASK, await surface.open_answer(ASK))
        stream.feed(TextDelta("The pool is exhausted."))
        await stream.aclose()

    assert world.at == []


async def test_a_place_that_cannot_be_stored_costs_no_answer() -> None:
    async with without_edits() as world:
        world.kept_fails = True
        surface = world.process()
        await surface.stream(ASK, await surface.open_answer(ASK)).finish(FINAL)

    assert world.slack.texts() == WHOLE


async def test_a_card_comes_before_waiting_placeholders() -> None:
    order: list[str] = []
    async with crowded(replace(NO_POSTS, posts_per_s=50.0)) as world:
        channel = ASK.place.channel
        await world.scheduler.post_permit(channel)

        async def waits(name: str, urgency: Urgency) -> None:
            await world.scheduler.post_permit(channel, urgency)
            order.append(name)

        async with asyncio.TaskGroup() as group:
            group.create_task(waits("placeholder", Urgency.PROGRESS))
            group.create_task(waits("first text", Urgency.FIRST))
            group.create_task(waits("card", Urgency.FINAL))

    assert order == ["card", "first text", "placeholder"]
