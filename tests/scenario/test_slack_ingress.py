"""The incoming side against a local workspace, over real Socket Mode and real signed HTTP.

Only the durable engine is a fake, which remembers what was started; its starts can fail or hang.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import JsonValue

from bot.actions.catalog import ActionCatalog
from bot.actions.revise import Revisions
from bot.demo.workspace.app import serving
from bot.demo.workspace.delivery import DeliveryPolicy
from bot.demo.workspace.json_access import object_at
from bot.demo.workspace.seeds import (
    CHECKOUT,
    DIRECT,
    GUEST,
    MEMBER,
    OTHER_BOT,
    QUIET,
    RESPONDER,
    RESPONDERS,
    SECOND_RESPONDER,
    STRANGER,
)
from bot.demo.workspace.state import Setup, Workspace
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.provider_status import ProviderStatus
from bot.domain.session import Ask, TurnState
from bot.domain.turn_events import Evidence
from bot.ports.failures import StorageUnavailable
from bot.slack.api.web_api import create_api
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.ingress.access import SlackAccess, StartupError
from bot.slack.ingress.http_mode import PATH, create_http_handler
from bot.slack.ingress.socket_mode import SocketMode
from bot.slack.ingress.startup import check_slack
from bot.slack.listeners import replies
from bot.slack.listeners.bolt_app import create_bolt
from bot.slack.listeners.ports import IngressSettings
from bot.slack.roles.channel_access import ChannelAccess
from bot.slack.roles.directory import RoleMembers, SlackRoleDirectory
from bot.slack.text.blocks import Block, actions, button
from bot.slack.views.sources import evidence_button
from bot.slack.views.surface import SlackSurface
from tests.fakes.card_wall import TRAITS
from tests.fakes.redactor import FakeRedactor
from tests.fixtures_slack import QUICK, running_beside
from tests.fixtures_workspace import refused
from tests.golden.slack_views import MANY_EVIDENCE
from tests.signed_http import signed_http
from tests.slack_ingress import NOW, Ingress, proposal
from tests.slack_request_gate import SlackRequestGate
from tools.redactor import Redacted

# Slack's own times, made short.
QUICK_DELIVERY = DeliveryPolicy(ack_timeout_s=0.3, retry_delays_s=(0.0, 0.05, 0.05))


@dataclass
class Bot:
    """The incoming side of one process, and the workspace it belongs to."""

    workspace: Workspace
    inside: Ingress
    surface: SlackSurface
    socket: SocketMode | None = None

    def __post_init__(self) -> None:
        self.workflows, self.stops = self.inside.workflows, self.inside.stops
        self.memory, self.background = self.inside.memory, self.inside.background
        self.sessions, self.proposals = self.inside.sessions, self.inside.proposals

    async def say(
        self, user: str, text: str, thread_ts: str | None = None, channel: str = CHECKOUT
    ) -> str:
        """Post as a person; returns when the bot has acknowledged and said what it says."""
        ts = await self.workspace.say(user, channel, text, thread_ts)
        await self.settled()
        return ts

    async def settled(self) -> None:
        await self.workspace.settled()
        await self.background.drain(5.0)

    def asks(self) -> list[Ask]:
        return list(self.workflows.turns.values())

    def whispers(self, user: str) -> list[str]:
        said = [message.text for message in self.workspace.whispers(user)]
        return [*said, *refused(self.workspace, user)]

    async def with_card(self) -> Proposal:
        """A pending proposal and its card in a thread."""
        now = datetime.now(UTC)
        root = await self.workspace.say(MEMBER, CHECKOUT, "checkout is slow")
        team = TeamId(self.workspace.app.team_id)
        pending = proposal(
            place=Place(team, ChannelId(CHECKOUT), MessageTs(root)),
            asked_by=Person(team, UserId(MEMBER)),
            created_at=now,
            expires_at=now + timedelta(minutes=10),
            card_ts=None,
        )
        card_ts = await self.surface.show_card(pending)
        self.proposals.rows[pending.id] = replace(pending, card_ts=card_ts)
        return self.proposals.rows[pending.id]

    async def press(self, user: str, card: Proposal, action: str) -> None:
        await self.workspace.click(user, str(card.card_ts), action, channel=CHECKOUT)
        await self.settled()

    async def with_session(self, thread_ts: str, channel: str = CHECKOUT) -> Ask:
        """A session with a running turn."""
        team = TeamId(self.workspace.app.team_id)
        place = Place(team, ChannelId(channel), MessageTs(thread_ts))
        ask = Ask(place, MessageTs(thread_ts), Person(team, UserId(RESPONDER)), Redacted("why?"))
        await self.sessions.begin_turn(ask, "incident", NOW)
        return ask


def access(workspace: Workspace, mode: str = "socket") -> SlackAccess:
    return SlackAccess(
        "http" if mode == "http" else "socket",
        f"{workspace.origin}/api/",
        workspace.bot_token,
        workspace.app_token,
        workspace.signing_secret,
    )


@asynccontextmanager
async def running_bot(workspace: Workspace, mode: str) -> AsyncIterator[Bot]:
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        scheduler = await stack.enter_async_context(running_beside(EditScheduler(QUICK)))
        identity = await check_slack(access(workspace, mode))
        api = create_api(workspace.bot_token, f"{workspace.origin}/api/", session)
        roles = SlackRoleDirectory(
            api, identity.team, {"responder": RoleMembers(usergroups=(RESPONDERS,))}, time.monotonic
        )
        inside = Ingress(
            IngressSettings(
                identity, signing_secret=workspace.signing_secret, admin_roles=("responder",)
            )
        )
        surface = SlackSurface(Outbox(api, scheduler, identity.bot_user))
        inside.providers.append(ProviderStatus("triage", True))
        bot = Bot(workspace, inside, surface)
        ports = replace(
            inside.ports,
            roles=roles,
            action_roles=ActionCatalog(()).roles_of,
            surface=surface,
            api=api,
            channel_access=ChannelAccess(api, identity.team, time.monotonic),
            revisions=Revisions(ActionCatalog(()), FakeRedactor(), TRAITS),
        )
        app = create_bolt(inside.settings, ports, bot.background, roles.forget_group)
        inside.ports, inside.background = ports, bot.background
        if mode == "http":
            site = web.Application()
            site.router.add_post(PATH, create_http_handler(app, workspace.signing_secret))
            server = await stack.enter_async_context(TestServer(site))
            await stack.enter_async_context(signed_http(workspace, str(server.make_url(PATH))))
        else:
            bot.socket = SocketMode(app, workspace.app_token, f"{workspace.origin}/api", 1.0)
            await bot.socket.start()
            stack.push_async_callback(bot.background.drain, 1.0)
            stack.push_async_callback(bot.socket.stop, 1.0)
            await workspace.wait_for(lambda: workspace.sockets.connections)
        yield bot


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    workspace = Workspace(Setup(delivery=QUICK_DELIVERY))
    async with serving(workspace):
        yield workspace


@pytest.fixture(params=["socket", "http"])
async def bot(workspace: Workspace, request: pytest.FixtureRequest) -> AsyncIterator[Bot]:
    async with running_bot(workspace, request.param) as bot:
        yield bot


@pytest.fixture
async def socket_bot(workspace: Workspace) -> AsyncIterator[Bot]:
    async with running_bot(workspace, "socket") as bot:
        yield bot


async def test_a_redelivered_mention_is_one_turn(bot: Bot) -> None:
    ts = await bot.say(MEMBER, "@kortex why is checkout slow?")
    (ask,) = bot.asks()
    assert (ask.text, ask.ts, ask.place.thread_ts) == ("why is checkout slow?", ts, ts)
    assert ask.asker.user == MEMBER
    assert ask.place.team == bot.workspace.app.team_id


async def test_a_failed_start_is_redelivered_and_is_one_turn(bot: Bot) -> None:
    bot.workflows.failures += [StorageUnavailable("locked"), StorageUnavailable("locked")]
    await bot.say(MEMBER, "@kortex why is checkout slow?")
    assert [ask.text for ask in bot.asks()] == ["why is checkout slow?"]
    assert bot.workspace.outbox.undelivered == []


async def test_the_asker_learns_that_nothing_started(bot: Bot) -> None:
    bot.workflows.failures += [StorageUnavailable("locked")] * 20
    await bot.say(MEMBER, "@kortex why is checkout slow?")
    assert bot.asks() == []
    assert bot.whispers(MEMBER) == [replies.NOT_STARTED, replies.GAVE_UP]


async def test_a_direct_message_and_a_follow_up_need_no_mention(bot: Bot) -> None:
    root = await bot.say(MEMBER, "@kortex why is checkout slow?")
    await bot.sessions.begin_turn(bot.asks()[0], "incident", NOW)
    await bot.say(MEMBER, "since when?", thread_ts=root)
    await bot.say(MEMBER, "lunch?")
    await bot.say(RESPONDER, "hello there", channel=DIRECT)
    assert [ask.text for ask in bot.asks()] == [
        "why is checkout slow?",
        "since when?",
        "hello there",
    ]


async def test_other_bots_and_deletions_start_nothing(bot: Bot) -> None:
    root = await bot.workspace.say(MEMBER, CHECKOUT, "checkout is slow")
    await bot.with_session(root)
    await bot.say(OTHER_BOT, "@kortex alert!", thread_ts=root)
    gone = await bot.workspace.say(OTHER_BOT, CHECKOUT, "alert", root)
    await bot.workspace.delete(OTHER_BOT, CHECKOUT, gone)
    await bot.settled()
    assert bot.asks() == []


async def test_an_empty_mention_gets_help_privately(bot: Bot) -> None:
    await bot.say(MEMBER, "@kortex")
    assert len(bot.whispers(MEMBER)) == 1
    assert bot.asks() == []


async def test_stop_in_the_thread_stops_the_turn(bot: Bot) -> None:
    root = await bot.workspace.say(MEMBER, CHECKOUT, "checkout is slow")
    ask = await bot.with_session(root)
    bot.stops.running.add(ask.turn_id)
    await bot.say(MEMBER, "stop", thread_ts=root)
    assert bot.stops.requested == [(ask.turn_id, MEMBER)]


async def test_a_user_from_a_partner_company_is_refused(bot: Bot) -> None:
    await bot.say(STRANGER, "@kortex why is checkout slow?")
    assert bot.asks() == []
    assert bot.whispers(STRANGER) == [replies.EXTERNAL]


async def test_a_responder_confirms(bot: Bot) -> None:
    card = await bot.with_card()
    await bot.press(RESPONDER, card, "proposal:confirm")
    ((proposal_id, decision),) = bot.workflows.decisions
    assert (proposal_id, decision.to, decision.by) == (
        card.id,
        ProposalState.CONFIRMED,
        RESPONDER,
    )


@pytest.mark.parametrize("user", [MEMBER, GUEST, STRANGER])
async def test_only_a_responder_confirms_and_the_card_stays(bot: Bot, user: str) -> None:
    card = await bot.with_card()
    before = bot.workspace.message(CHECKOUT, str(card.card_ts))
    await bot.press(user, card, "proposal:confirm")
    await bot.press(user, card, "proposal:reject")
    assert bot.workflows.decisions == []
    assert len(bot.whispers(user)) == 2
    assert bot.workspace.message(CHECKOUT, str(card.card_ts)) == before


async def test_two_responders_at_once_are_both_answered(bot: Bot) -> None:
    card = await bot.with_card()
    async with asyncio.TaskGroup() as group:
        group.create_task(bot.press(RESPONDER, card, "proposal:confirm"))
        group.create_task(bot.press(SECOND_RESPONDER, card, "proposal:confirm"))
    assert {decision.by for _, decision in bot.workflows.decisions} == {RESPONDER, SECOND_RESPONDER}


async def test_a_database_outage_is_reported_to_the_clicker(bot: Bot) -> None:
    card = await bot.with_card()
    bot.workflows.failures.append(StorageUnavailable("full"))
    await bot.press(RESPONDER, card, "proposal:confirm")
    assert bot.whispers(RESPONDER) == [replies.CLICK_NOT_STORED]


async def test_a_rejection_carries_its_reason(bot: Bot) -> None:
    card = await bot.with_card()
    await bot.press(RESPONDER, card, "proposal:reject")
    (modal,) = bot.workspace.modals_of(RESPONDER)
    ack = await bot.workspace.submit(RESPONDER, str(modal["id"]), {"text": "wrong service"})
    ((_, decision),) = bot.workflows.decisions
    assert ack.ok
    assert (decision.to, decision.reason) == (ProposalState.REJECTED, "wrong service")
    assert bot.workspace.modals_of(RESPONDER) == ()


async def test_a_rejection_that_cannot_be_stored_keeps_its_form_open(bot: Bot) -> None:
    card = await bot.with_card()
    await bot.press(RESPONDER, card, "proposal:reject")
    (modal,) = bot.workspace.modals_of(RESPONDER)
    bot.workflows.failures.append(StorageUnavailable("locked"))
    await bot.workspace.submit(RESPONDER, str(modal["id"]), {"text": "wrong service"})
    assert len(bot.workspace.modals_of(RESPONDER)) == 1
    assert bot.workflows.decisions == []


async def test_a_decided_card_pressed_by_a_stale_client_names_the_decider(bot: Bot) -> None:
    card = await bot.with_card()
    bot.proposals.rows[card.id] = replace(
        card,
        state=ProposalState.REJECTED,
        decided_by=UserId(SECOND_RESPONDER),
        decided_at=NOW,
    )
    await bot.press(RESPONDER, card, "proposal:confirm")
    (text,) = bot.whispers(RESPONDER)
    assert "rejected by" in text
    assert "onas" in text


async def test_a_result_opens_in_a_modal_that_slack_accepts(bot: Bot) -> None:
    root = await bot.workspace.say(MEMBER, CHECKOUT, "checkout is slow")
    ask = await bot.with_session(root)
    content = '{"lines": ["<!channel> \\u202e ' + "x" * 60_000 + '"]}'
    found = Evidence(1, "c1", "core__get_logs", "many lines", True, 40, True, content)
    await bot.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, [], [found], NOW)
    answer = await _post_button(bot, root, "evidence:open:1", f"{ask.turn_id}|1")
    await bot.workspace.click(MEMBER, answer, "evidence:open:1", channel=CHECKOUT)
    await bot.settled()
    assert len(bot.workspace.modals_of(MEMBER)) == 1


async def test_every_result_opens_from_the_evidence(bot: Bot) -> None:
    root = await bot.workspace.say(MEMBER, CHECKOUT, "checkout is slow")
    ask = await bot.with_session(root)
    await bot.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, [], MANY_EVIDENCE, NOW)
    answer = await post(bot, root, [actions([evidence_button(ask.turn_id, 34)[1]])])
    await bot.workspace.click(MEMBER, answer, "evidence:all", channel=CHECKOUT)
    await bot.settled()
    (listed,) = bot.workspace.modals_of(MEMBER)
    await bot.workspace.press_in_view(MEMBER, str(listed["id"]), "evidence:open:34")
    await bot.settled()
    (_, modal) = bot.workspace.modals_of(MEMBER)
    assert object_at(modal, "title")["text"] == "Result E34"


async def test_the_command_answers_privately(bot: Bot) -> None:
    everyone = await bot.workspace.command(MEMBER, CHECKOUT, "help")
    refused = await bot.workspace.command(MEMBER, CHECKOUT, "providers")
    admin = await bot.workspace.command(RESPONDER, CHECKOUT, "providers")
    answers = [str((ack.body or {}).get("text")) for ack in (everyone, refused, admin)]
    assert replies.COMMAND_HELP in answers[0]
    assert "Only admins can see the models: @responder" in answers[1]
    assert "triage: configured" in answers[2]


async def test_the_home_tab_is_published(bot: Bot) -> None:
    bot.workspace.open_home(MEMBER)
    await bot.settled()
    assert bot.workspace.home_of(MEMBER) is not None


async def _post_button(bot: Bot, thread_ts: str, action_id: str, value: str) -> str:
    return await post(bot, thread_ts, [actions([button("Open E1", action_id, value)])])


async def post(bot: Bot, thread_ts: str, blocks: list[Block]) -> str:
    async with aiohttp.ClientSession() as session:
        api = create_api(bot.workspace.bot_token, f"{bot.workspace.origin}/api/", session)
        answer = await api.call(
            "chat.postMessage",
            channel=CHECKOUT,
            thread_ts=thread_ts,
            text="answer",
            blocks=list[JsonValue](blocks),
        )
        return str(answer["ts"])


async def test_a_reconnection_loses_no_message(socket_bot: Bot) -> None:
    await socket_bot.workspace.sockets.refresh()
    await socket_bot.say(MEMBER, "@kortex why is checkout slow?")
    assert [ask.text for ask in socket_bot.asks()] == ["why is checkout slow?"]


async def test_readiness_follows_the_connection(socket_bot: Bot) -> None:
    socket = socket_bot.socket
    assert socket is not None
    connected = await socket.is_connected()
    await socket.stop(1.0)
    assert (connected, await socket.is_connected()) == (True, False)
    await socket_bot.workspace.wait_for(lambda: not socket_bot.workspace.sockets.connections)


async def test_a_refused_app_token_is_reported_until_slack_accepts_it_again() -> None:
    refused: dict[str, str] = {}
    workspace = Workspace(
        Setup(delivery=QUICK_DELIVERY, request_gate=SlackRequestGate(refused=refused))
    )
    async with serving(workspace), running_bot(workspace, "socket") as bot:
        socket = bot.socket
        assert socket is not None
        for code, known in (
            ("internal_error", ""),
            ("invalid_auth", "invalid_auth"),
            ("internal_error", "invalid_auth"),  # says nothing of the token
        ):
            refused["apps.connections.open"] = code
            workspace.calls.clear()
            await workspace.sockets.drop()
            await workspace.wait_for(lambda: workspace.calls, 15)
            async with asyncio.timeout(5):
                while socket.refusal != known:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert not await socket.is_connected()

        refused.clear()
        await workspace.wait_for(lambda: workspace.sockets.connections, 15)
        assert not socket.refusal


async def test_a_stop_acknowledges_the_events_in_progress(workspace: Workspace) -> None:
    async with running_bot(workspace, "socket") as bot:
        assert bot.socket is not None
        bot.workflows.gate.clear()
        await workspace.say(RESPONDER, DIRECT, "why?")
        await bot.workflows.entered.wait()
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(bot.socket.stop(5.0))
            await asyncio.sleep(0)
            bot.workflows.gate.set()
        assert stopping.done()
        await workspace.settled()
        assert len(bot.asks()) == 1
    assert workspace.outbox.undelivered == []


async def test_an_unacknowledged_event_goes_to_the_next_process(
    workspace: Workspace,
) -> None:
    async with running_bot(workspace, "socket") as first:
        assert first.socket is not None
        first.workflows.gate.clear()
        await workspace.say(RESPONDER, DIRECT, "why?")
        await first.workflows.entered.wait()
        await first.socket.stop(0.0)
        lost = first.asks()
    async with running_bot(workspace, "socket") as second:
        await workspace.settled()
        assert (lost, [ask.text for ask in second.asks()]) == ([], ["why?"])


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"bot_token": "xoxb-wrong"}, "slack.bot_token"),
        ({"app_token": "xapp-wrong"}, "slack.app_token"),
        ({"bot_token": "xapp-wrong"}, "slack.bot_token"),
    ],
)
async def test_invalid_tokens_end_the_start(
    workspace: Workspace, change: dict[str, str], key: str
) -> None:
    with pytest.raises(StartupError) as caught:
        await check_slack(replace(access(workspace), **change))  # type: ignore[arg-type]
    assert caught.value.key == key


async def test_a_quiet_channel_gets_no_message(bot: Bot) -> None:
    await bot.say(MEMBER, "nothing to see", channel=QUIET)
    assert (bot.asks(), bot.workspace.messages(QUIET)[-1].text) == ([], "nothing to see")
