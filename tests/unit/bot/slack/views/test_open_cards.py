"""An id of an open proposal becomes a link to its card: of the same conversation, of the store's word."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bot.domain.ids import ChannelId, MessageTs, Place, ProposalId, TeamId
from bot.domain.proposal import LIFETIME, Proposal, ProposalState
from bot.ports.failures import StorageUnavailable, SurfaceGone
from bot.slack.api.web_api import RateLimited, Refused, Unreachable
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.cards import OpenCards
from tests.fakes.slack_web import FakeSlackWeb
from tests.fixtures_slack import QUICK, running_beside
from tests.golden.slack_views import AT, fixed_now, proposal

ID = ProposalId("p_" + "0a" * 12)
OPEN = proposal(
    id=ID, card_ts=MessageTs("1763700001.000200"), created_at=AT, expires_at=AT + LIFETIME
)
HERE = OPEN.place
TEXT = f"A rollback is proposed already ({ID})."


class Stored:
    """One row, or a failure."""

    def __init__(self, row: Proposal | Exception | None = OPEN) -> None:
        self.row = row

    async def __call__(self, proposal_id: ProposalId) -> Proposal | None:
        if isinstance(self.row, Exception):
            raise self.row
        return self.row if proposal_id == ID else None


@pytest.fixture
def slack() -> FakeSlackWeb:
    return FakeSlackWeb()


@pytest.fixture
async def outbox(slack: FakeSlackWeb) -> AsyncIterator[Outbox]:
    async with running_beside(EditScheduler(QUICK)) as scheduler:
        yield Outbox(slack, scheduler)


async def lines_of_cards(
    outbox: Outbox, text: str, row: Proposal | Exception | None = OPEN
) -> list[str]:
    return list(await OpenCards(outbox, Stored(row), fixed_now, 0.05).lines(text, HERE))


async def test_a_named_open_proposal_is_linked_once(outbox: Outbox) -> None:
    link = f"https://team.slack.com/archives/{HERE.channel}/p1763700001000200"

    assert await lines_of_cards(outbox, f"{TEXT} Again: {ID}") == [
        f"Open proposal: {OPEN.action} of {OPEN.product}, <{link}|its card>"
    ]


async def test_an_open_proposal_of_another_thread_is_linked(outbox: Outbox) -> None:
    elsewhere = replace(HERE, thread_ts=MessageTs("1763700009.000900"))

    (line,) = await lines_of_cards(outbox, TEXT, replace(OPEN, place=elsewhere))

    assert "its card" in line


@pytest.mark.parametrize(
    "row",
    [
        None,
        replace(OPEN, place=Place(HERE.team, ChannelId("C2"), HERE.thread_ts)),
        replace(OPEN, place=Place(TeamId("T2"), HERE.channel, HERE.thread_ts)),
        replace(OPEN, state=ProposalState.REJECTED),
        replace(OPEN, card_ts=None),
        replace(OPEN, expires_at=AT),
        StorageUnavailable("gone"),
    ],
    ids=[
        "unknown",
        "of another channel",
        "of another workspace",
        "decided",
        "no card",
        "expired",
        "database gone",
    ],
)
async def test_a_proposal_that_is_not_open_here_is_not_linked_or_looked_up(
    outbox: Outbox, slack: FakeSlackWeb, row: Proposal | Exception | None
) -> None:
    assert await lines_of_cards(outbox, TEXT, row) == []
    assert slack.begun["chat.getPermalink"] == 0


@pytest.mark.parametrize(
    "fault",
    [
        Refused("chat.getPermalink", "message_not_found"),
        RateLimited("chat.getPermalink", 30.0),
        SurfaceGone("chat.getPermalink: channel_not_found"),
        Unreachable("chat.getPermalink", "no connection"),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_refused_permalink_leaves_the_id(
    outbox: Outbox, slack: FakeSlackWeb, fault: Exception
) -> None:
    slack.faults["chat.getPermalink"].append(fault)

    assert await lines_of_cards(outbox, TEXT) == []


async def test_a_slow_permalink_delays_no_answer(outbox: Outbox, slack: FakeSlackWeb) -> None:
    slack.gates["chat.getPermalink"] = asyncio.Event()

    async with asyncio.timeout(1):
        assert await lines_of_cards(outbox, TEXT) == []


@pytest.mark.parametrize(
    "link", ["", "javascript:alert(1)", "http://team.slack.com/x", "https://a.com/|<!channel>"]
)
async def test_an_address_that_is_not_plain_https_is_not_linked(
    outbox: Outbox, slack: FakeSlackWeb, link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack, "_chat_getpermalink", lambda **_: {"permalink": link}, raising=False)

    assert await lines_of_cards(outbox, TEXT) == []


async def test_names_of_an_action_cannot_write_links_or_mentions(outbox: Outbox) -> None:
    hostile = replace(OPEN, action="<!channel> x", product="a|b> <https://evil.example|its card>")
    (line,) = await lines_of_cards(outbox, TEXT, hostile)

    assert line.count("<") == 1
    assert "<!" not in line


@pytest.mark.parametrize(
    "text", ["no id", "p_0a0a", f"x{ID}", f"{ID}0", ID.upper(), f"p_{'0b' * 12}"]
)
async def test_a_text_without_a_proposal_id_links_nothing(outbox: Outbox, text: str) -> None:
    assert await lines_of_cards(outbox, text) == []
