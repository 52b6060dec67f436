"""What every chat platform keeps: one placeholder, the whole final, one card, one line for each key."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from bot.cli.headless import HeadlessSurface
from bot.domain.chart import Chart, Line
from bot.domain.ids import MessageTs, ProposalId, UserId
from bot.domain.proposal import ProposalState
from bot.domain.turn_events import TextDelta
from bot.ports.platform import ChatSurface
from bot.slack.delivery.outbox import Outbox, Patience
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.surface import SlackSurface
from tests.fakes.recording_chat import RecordingChat
from tests.fakes.slack_web import FakeSlackWeb
from tests.fixtures_slack import ASK, QUICK, running_beside
from tests.golden.slack_views import AT, finished, fixed_now, proposal


@dataclass
class Platform:
    """A platform under test, and what people see on it: messages by id, words to one person."""

    surface: ChatSurface
    again: Callable[[], ChatSurface]  # the same platform after a restart of ours
    seen: Callable[[], Mapping[str, str]]
    whispered: Callable[[], Sequence[str]]


@pytest.fixture
async def slack() -> AsyncIterator[Platform]:
    web = FakeSlackWeb()
    async with running_beside(EditScheduler(QUICK)) as scheduler:

        def made() -> SlackSurface:
            outbox = Outbox(web, scheduler, bot_user_id="UBOT")
            return SlackSurface(outbox, now=fixed_now, patience=Patience(backoff_s=0.001))

        def whispered() -> list[str]:
            told = [args for method, args in web.calls if method == "chat.postEphemeral"]
            return [str(args["text"]) for args in told]

        def seen() -> dict[str, str]:
            return {ts: str(message) for ts, message in web.messages.items()}

        yield Platform(made(), made, seen, whispered)


@pytest.fixture
async def headless() -> Platform:
    told: list[str] = []
    surface = HeadlessSurface(told.append)

    def seen() -> dict[str, str]:
        return {p.id: f"{p.state.value} {p.action}" for p in surface.proposals}

    return Platform(surface, lambda: surface, seen, lambda: told)


@pytest.fixture
async def fake() -> Platform:
    surface = RecordingChat()

    def seen() -> dict[str, str]:
        cards = {
            str(i): f"{all_[-1].state.value} {all_[-1].action}" for i, all_ in surface.cards.items()
        }
        return {**cards, **surface.lines}

    return Platform(surface, lambda: surface, seen, lambda: [text for _, text in surface.whispers])


@pytest.fixture(params=["slack", "headless", "fake"])
def platform(request: pytest.FixtureRequest) -> Platform:
    found: Platform = request.getfixturevalue(request.param)
    return found


async def test_an_ask_has_one_placeholder_for_all_callers(platform: Platform) -> None:
    first = await platform.surface.open_answer(ASK)
    before = set(platform.seen())

    at_once = await asyncio.gather(*(platform.surface.open_answer(ASK) for _ in range(3)))
    restarted = await platform.again().open_answer(ASK)

    assert {first, restarted, *at_once} == {first}
    assert set(platform.seen()) == before


async def test_an_answer_is_fed_without_waiting_and_ends_once(platform: Platform) -> None:
    ts = await platform.surface.open_answer(ASK)
    stream = platform.surface.stream(ASK, ts)

    stream.feed(TextDelta("The deploy "))
    stream.feed(TextDelta("of checkout."))
    async with asyncio.timeout(5):
        await stream.finish(finished())
        await stream.aclose()


async def test_an_answer_taken_over_elsewhere_is_left_without_an_end(platform: Platform) -> None:
    ts = await platform.surface.open_answer(ASK)
    stream = platform.surface.stream(ASK, ts)

    stream.feed(TextDelta("The deploy"))
    async with asyncio.timeout(5):
        await stream.aclose()


async def test_a_proposal_has_one_card_that_shows_its_newest_state(platform: Platform) -> None:
    row = proposal()
    ts = await platform.surface.show_card(row)
    before = set(platform.seen())

    decided = replace(row, state=ProposalState.REJECTED, card_ts=ts)
    assert await platform.surface.show_card(decided) == ts
    assert set(platform.seen()) == before
    assert any("reject" in text.lower() for text in platform.seen().values())


async def test_two_proposals_have_two_cards(platform: Platform) -> None:
    first = await platform.surface.show_card(proposal())
    other = replace(proposal(), id=ProposalId("another"))

    assert await platform.surface.show_card(other) != first


async def test_a_line_is_said_once_for_each_key(platform: Platform) -> None:
    first = await platform.surface.say(ASK.place, "done", "a")

    assert await platform.surface.say(ASK.place, "done", "a") == first
    assert await platform.surface.say(ASK.place, "done", "b") != first


async def test_a_line_with_a_chart_is_posted_even_if_the_chart_fails(
    platform: Platform,
) -> None:
    points = tuple((AT + timedelta(minutes=n), float(n)) for n in range(3))
    chart = Chart(0, "checkout", "p99", "seconds", (Line("checkout", points),))

    first = await platform.surface.say(ASK.place, "p99 is back", "a", [chart])

    assert await platform.surface.say(ASK.place, "p99 is back", "a", [chart]) == first


async def test_a_private_message_reaches_its_recipient(platform: Platform) -> None:
    assert platform.surface.traits.private_messages

    await platform.surface.whisper(ASK.place, UserId("U1"), "not for you")

    assert ["not for you" in text for text in platform.whispered()] == [True]


def test_a_platform_reports_its_capabilities(platform: Platform) -> None:
    traits = platform.surface.traits

    assert traits.name
    assert 0 < traits.preview_chars <= traits.card_chars <= traits.message_chars
    assert traits.edits_per_minute > 0


async def test_an_unknown_thread_is_accepted(platform: Platform) -> None:
    unseen = replace(ASK, place=replace(ASK.place, thread_ts=MessageTs("1699999999.000001")))

    assert await platform.surface.open_answer(unseen)
