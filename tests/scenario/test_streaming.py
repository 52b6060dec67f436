"""Live answers against a workspace that refuses what Slack refuses, over real HTTP.

Time runs faster for both sides: at ten times, Slack's minute is six seconds here.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import aiohttp
import pytest

from bot.actions.display import CardSweep, ProposalDisplay
from bot.demo.workspace.app import api_base_url, serving
from bot.demo.workspace.seeds import CHECKOUT, DIRECT, MEMBER, PAYMENTS, QUIET, RESPONDER
from bot.demo.workspace.state import Clocks, Setup, Workspace
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.proposal import ProposalState
from bot.domain.session import Ask
from bot.domain.turn_events import RoundStarted, TextDelta, TurnEnd
from bot.ports.failures import SurfaceGone
from bot.slack.api.web_api import WebApi, create_api
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.render import render
from bot.slack.views.surface import SlackSurface
from tests.fakes.cards import MemoryCards
from tests.fakes.stores import Memory, MemoryProposals
from tests.fixtures_slack import faster, running_beside
from tests.golden.slack_views import (
    EVIDENCE,
    LONG,
    OUTCOMES,
    ended,
    finished,
    fixed_now,
    golden,
    outcome,
    proposal,
    started,
    view,
)
from tests.slack_request_gate import RateLimits, SlackRequestGate
from tools.redactor import Redacted

SPEED = 10


@dataclass
class Slack:
    """The workspace, and the surface that talks to it."""

    workspace: Workspace
    surface: SlackSurface
    api: WebApi
    request_gate: SlackRequestGate

    async def ask(self, channel: str, text: str = "@kortex why?", user: str = MEMBER) -> Ask:
        ts = MessageTs(await self.workspace.say(user, channel, text))
        team = TeamId(self.workspace.app.team_id)
        thread = MessageTs("") if channel == DIRECT else ts
        place = Place(team, ChannelId(channel), thread)
        return Ask(place, ts, Person(team, UserId(user)), Redacted(text))

    def answer(self, ask: Ask) -> list[str]:
        """The bot's texts in the thread, oldest first."""
        messages = self.workspace.timeline.replies(ask.place.channel, ask.place.thread_ts)
        return [message.text for message in messages]


@asynccontextmanager
async def slack_at(speed: int) -> AsyncIterator[Slack]:
    """A workspace with Slack's real limits and a surface, both on a clock that fast."""
    clocks = Clocks(monotonic=lambda: time.monotonic() * speed)
    request_gate = SlackRequestGate(RateLimits(), clocks.monotonic)
    workspace = Workspace(Setup(clocks=clocks, request_gate=request_gate))
    async with (
        serving(workspace) as origin,
        aiohttp.ClientSession() as session,
        running_beside(EditScheduler(faster(speed))) as scheduler,
    ):
        port = int(origin.rsplit(":", 1)[1])
        api = create_api(workspace.bot_token, api_base_url(port), session)
        outbox = Outbox(api, scheduler, workspace.app.bot_user_id)
        yield Slack(workspace, SlackSurface(outbox, now=fixed_now), api, request_gate)


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    async with slack_at(SPEED) as made:
        yield made


FINALS = {
    "short": finished(text="The pool of checkout is exhausted [1].", evidence=EVIDENCE, outcomes=OUTCOMES),
    "long": finished(text=LONG, evidence=EVIDENCE, outcomes=OUTCOMES),
}  # fmt: skip


async def answered(slack: Slack, ask: Ask, kind: str) -> None:
    """One whole turn, streamed."""
    stream = slack.surface.stream(ask, await slack.surface.open_answer(ask))
    stream.feed(RoundStarted(1, "anthropic", "claude-sonnet-5"))
    stream.feed(started("a"))
    await asyncio.sleep(0.02)
    stream.feed(ended(outcome("a"), 1))
    for word in FINALS[kind].text.split(" ")[:80]:
        stream.feed(TextDelta(word + " "))
        await asyncio.sleep(0.01)
    await stream.finish(FINALS[kind])


@pytest.mark.parametrize(("threads", "long_every", "speed"), [(20, 7, SPEED), (100, 25, 15)])
async def test_many_answers_at_once_are_complete_and_within_the_rate_limit(
    threads: int, long_every: int, speed: int
) -> None:
    kinds = ["long" if n % long_every == 0 else "short" for n in range(threads)]
    async with slack_at(speed) as slack:
        asks = [await slack.ask([CHECKOUT, PAYMENTS, QUIET][n % 3]) for n in range(threads)]
        async with asyncio.timeout(55), asyncio.TaskGroup() as turns:
            for ask, kind in zip(asks, kinds, strict=True):
                turns.create_task(answered(slack, ask, kind))

        assert sum(slack.request_gate.counters.limited.values()) == 0
        assert [slack.answer(ask) for ask in asks] == [
            [part.text for part in render(view([FINALS[kind]]))] for kind in kinds
        ]
        assert [call.error for call in slack.workspace.calls if call.error] == []


async def test_the_first_text_of_a_single_answer_is_shown_at_once(slack: Slack) -> None:
    ask = await slack.ask(CHECKOUT)
    stream = slack.surface.stream(ask, await slack.surface.open_answer(ask))
    before = time.perf_counter()
    stream.feed(TextDelta("Checkout fails"))
    await slack.workspace.wait_for(lambda: slack.answer(ask) == ["Checkout fails"])

    assert time.perf_counter() - before < 0.5
    await stream.aclose()


async def test_a_burst_of_rate_limits_delays_the_final_text_but_does_not_lose_it(
    slack: Slack,
) -> None:
    ask = await slack.ask(CHECKOUT)
    stream = slack.surface.stream(ask, await slack.surface.open_answer(ask))
    slack.request_gate._windows["chat.update"].extend([time.monotonic() * SPEED - 54] * 50)
    await stream.finish(FINALS["long"])

    assert slack.answer(ask) == [part.text for part in render(view([FINALS["long"]]))]
    assert slack.request_gate.counters.limited["chat.update"] >= 1


async def test_a_direct_message_is_answered_next_to_the_question(slack: Slack) -> None:
    ask = await slack.ask(DIRECT, "why?", RESPONDER)
    ts = await slack.surface.open_answer(ask)
    await slack.surface.stream(ask, ts).finish(FINALS["long"])
    texts = [message.text for message in slack.workspace.timeline.channel(DIRECT)]

    assert texts == ["why?", *(part.text for part in render(view([FINALS["long"]])))]


@pytest.mark.parametrize("name", sorted(golden()))
async def test_every_possible_message_is_accepted_by_slack(slack: Slack, name: str) -> None:
    ask = await slack.ask(CHECKOUT)
    outbox = slack.surface.outbox
    for number, part in enumerate(golden()[name]):
        ts = await slack.surface.say(ask.place, "before", f"{name}{number}")
        await outbox.edit(ask.place.channel, ts, part)

    assert [call.error for call in slack.workspace.calls if call.error] == []
    assert slack.answer(ask) == [part.text for part in golden()[name]]


async def test_a_card_shows_all_its_states_in_one_message(slack: Slack) -> None:
    ask = await slack.ask(CHECKOUT)
    pending = proposal(place=ask.place)
    ts = await slack.surface.show_card(pending)
    for state in (ProposalState.CONFIRMED, ProposalState.DISPATCHING, ProposalState.SUCCEEDED):
        await slack.surface.show_card(proposal(state, place=ask.place, card_ts=ts))

    assert slack.answer(ask) == ["Succeeded: Roll back checkout to 1.4.2"]


async def test_a_card_decided_during_an_outage_is_correct_afterwards(slack: Slack) -> None:
    ask = await slack.ask(CHECKOUT)
    rows = MemoryProposals(Memory())
    rows.rows[proposal().id] = proposal(place=ask.place)
    cards = MemoryCards(rows, lambda: datetime.now(UTC))
    sweep = CardSweep(cards, ProposalDisplay(cards, slack.surface))
    await sweep.run()
    members = slack.workspace.roster.channel(CHECKOUT).members
    slack.workspace.remove_bot(CHECKOUT)
    rows.rows[proposal().id] = replace(rows.rows[proposal().id], state=ProposalState.EXPIRED)

    await sweep.run()
    assert slack.answer(ask) == ["Proposal: Roll back checkout to 1.4.2?"]
    slack.workspace.roster.set_members(CHECKOUT, members)
    await cards.lapse()
    await sweep.run()

    assert slack.answer(ask) == ["Expired: Roll back checkout to 1.4.2"]


async def test_an_archived_channel_ends_the_answer_as_gone(slack: Slack) -> None:
    ask = await slack.ask(CHECKOUT)
    stream = slack.surface.stream(ask, await slack.surface.open_answer(ask))
    slack.workspace.archive(CHECKOUT)

    with pytest.raises(SurfaceGone):
        await stream.finish(finished(end=TurnEnd.STOPPED))


async def test_an_answer_fails_as_gone_after_the_bot_leaves_the_channel(slack: Slack) -> None:
    ask = await slack.ask(CHECKOUT)
    slack.workspace.remove_bot(CHECKOUT)

    with pytest.raises(SurfaceGone):
        await slack.surface.open_answer(ask)


async def test_an_ephemeral_message_reaches_one_person(slack: Slack) -> None:
    ask = await slack.ask(CHECKOUT)
    await slack.surface.open_answer(ask)
    await slack.surface.whisper(ask.place, UserId(MEMBER), "Only responders may confirm.")

    assert [
        call.error for call in slack.workspace.calls if call.method == "chat.postEphemeral"
    ] == [""]
