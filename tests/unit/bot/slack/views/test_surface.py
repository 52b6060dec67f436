"""Placeholders, cards, whispers and notes: posted once, found again, never unfurled."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime

import pytest

from bot.domain.ids import MessageTs, ProposalId, UserId
from bot.domain.proposal import LIFETIME, ProposalState
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import RateLimited, Unreachable
from bot.slack.delivery.outbox import Outbox, Patience
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.surface import SlackSurface
from tests.fakes.slack_web import FakeSlackWeb, Lost
from tests.fixtures_slack import ASK, QUICK, running_beside
from tests.golden.slack_views import AT, fixed_now, proposal

DIRECT = replace(ASK, place=replace(ASK.place, thread_ts=MessageTs("")))


@pytest.fixture
def slack() -> FakeSlackWeb:
    return FakeSlackWeb()


@pytest.fixture
async def surface(slack: FakeSlackWeb) -> AsyncIterator[SlackSurface]:
    async with running_beside(EditScheduler(QUICK)) as scheduler:
        outbox = Outbox(slack, scheduler, bot_user_id="UBOT")
        yield SlackSurface(outbox, now=fixed_now, patience=Patience(backoff_s=0.001))


async def test_the_placeholder_is_a_reply_with_stop(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    ts = await surface.open_answer(ASK)

    posted = slack.messages[ts]
    assert posted["thread_ts"] == ASK.place.thread_ts
    assert posted["text"] == "Looking into it: why?"
    assert "turn:stop" in str(posted["blocks"])


async def test_outside_a_thread_the_placeholder_is_a_new_message(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    ts = await surface.open_answer(DIRECT)

    assert "thread_ts" not in slack.messages[ts]


@pytest.mark.parametrize("ask", [ASK, DIRECT], ids=["thread", "direct"])
async def test_a_repeated_ask_has_the_same_message(
    slack: FakeSlackWeb, surface: SlackSurface, ask: object
) -> None:
    first = await surface.open_answer(ask)  # type: ignore[arg-type]
    restarted = SlackSurface(surface.outbox)

    assert await restarted.open_answer(ask) == first  # type: ignore[arg-type]
    assert len(slack.messages) == 1


async def test_two_simultaneous_attempts_post_once(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    first, second = await asyncio.gather(surface.open_answer(ASK), surface.open_answer(ASK))

    assert first == second
    assert len(slack.messages) == 1


async def test_a_lost_reply_does_not_post_twice(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    slack.faults["chat.postMessage"].append(Lost(Unreachable("chat.postMessage", "cut")))

    assert await surface.open_answer(ASK) in slack.messages
    assert len(slack.messages) == 1


async def test_a_new_ask_is_not_looked_up(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    vouching = SlackSurface(surface.outbox, take_first_look=lambda ask: ask == ASK)
    await vouching.open_answer(ASK)

    assert slack.count("conversations.replies") == 0


async def test_a_foreign_message_with_our_mark_is_not_ours(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    slack.user = "UEVIL"
    foreign = await surface.open_answer(ASK)
    slack.user = "UBOT"

    assert await SlackSurface(surface.outbox).open_answer(ASK) != foreign


async def test_no_post_unfurls(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    await surface.open_answer(ASK)
    await surface.show_card(proposal())
    await surface.say(ASK.place, "done", "k")
    posts = [args for method, args in slack.calls if method == "chat.postMessage"]

    assert [(args["unfurl_links"], args["unfurl_media"]) for args in posts] == [(False, False)] * 3


async def test_a_card_is_posted_once_and_then_updated(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    ts = await surface.show_card(proposal())

    assert await surface.show_card(proposal(ProposalState.REJECTED)) == ts
    assert await surface.show_card(proposal(ProposalState.SUCCEEDED, card_ts=ts)) == ts
    assert slack.texts() == ["Succeeded: Roll back checkout to 1.4.2"]


async def test_a_card_is_tried_once_because_its_painter_retries(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    slack.faults["chat.postMessage"].append(SurfaceFailed("no", retryable=True))

    with pytest.raises(SurfaceFailed):
        await surface.show_card(proposal())
    assert slack.messages == {}


async def test_a_cards_expiry_uses_the_databases_clock(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    async def later() -> datetime:
        return AT + LIFETIME

    in_time = await surface.show_card(proposal())
    too_late = await SlackSurface(surface.outbox, now=later).show_card(
        proposal(id=ProposalId("another"))
    )

    assert "proposal:confirm" in str(slack.messages[in_time]["blocks"])
    assert "proposal:confirm" not in str(slack.messages[too_late]["blocks"])


async def test_two_updates_of_a_card_keep_their_order(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    ts = await surface.show_card(proposal())
    await asyncio.gather(
        surface.show_card(proposal(ProposalState.DISPATCHING, card_ts=ts)),
        surface.show_card(proposal(ProposalState.SUCCEEDED, card_ts=ts)),
    )

    assert slack.texts() == ["Succeeded: Roll back checkout to 1.4.2"]


@pytest.mark.parametrize(
    "error",
    [SurfaceGone("user_not_in_channel"), SurfaceFailed("no", retryable=True)],
)
async def test_an_undeliverable_ephemeral_message_is_dropped(
    slack: FakeSlackWeb, surface: SlackSurface, error: Exception
) -> None:
    slack.faults["chat.postEphemeral"].append(error)

    await surface.whisper(ASK.place, UserId("U1"), "not yours to confirm")


async def test_an_ephemeral_message_is_for_one_person_in_the_thread_and_escaped(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    await surface.whisper(ASK.place, UserId("U1"), "<!channel> no")

    ((_, sent),) = slack.calls
    assert (sent["user"], sent["thread_ts"]) == ("U1", ASK.place.thread_ts)
    assert sent["text"] == "&lt;!channel&gt; no"


async def test_a_note_is_posted_once_per_key(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    first = await surface.say(ASK.place, "rolled back", "p1:outcome")

    assert await surface.say(ASK.place, "rolled back", "p1:outcome") == first
    assert await surface.say(ASK.place, "rolled back", "p2:outcome") != first
    assert slack.texts() == ["rolled back"] * 2


async def test_a_long_note_is_complete_and_its_repetition_adds_nothing(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    text = "line of the outcome\n" * 600
    first = await surface.say(ASK.place, text, "k")
    count = len(slack.messages)

    assert await surface.say(ASK.place, text, "k") == first
    assert len(slack.messages) == count
    assert "".join(slack.texts()).count("line of the outcome") == 600


async def test_a_note_waits_for_a_rate_limit(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    slack.faults["chat.postMessage"].append(RateLimited("chat.postMessage", 0.02))

    assert await surface.say(ASK.place, "rolled back", "k") in slack.messages
