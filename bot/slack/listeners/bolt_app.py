"""The Bolt app: its listeners acknowledge, parse and hand over.

Listeners run before the response (`process_before_response`): an event is acknowledged only after
its durable start. An error is a 500 (HTTP) or no acknowledgement (Socket Mode), and Slack delivers
again.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import structlog
from pydantic import BaseModel, JsonValue
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.logger.messages import warning_client_prioritized_and_token_skipped
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.ids import ChannelId
from bot.ports.failures import StorageUnavailable
from bot.slack.api.web_api import framework_logger
from bot.slack.ingress.clicks import click_of, installed_team, recall
from bot.slack.ingress.denials import Denials
from bot.slack.ingress.payloads import (
    BlockActions,
    ChannelReached,
    ChannelRenamed,
    GroupChanged,
    HomeOpened,
    MessageEnvelope,
    SessionStopped,
    SlackIdentity,
    SlashCommand,
    ViewSubmission,
    parsed,
)
from bot.slack.ingress.payloads import Removed as RemovedEvent
from bot.slack.listeners import replies
from bot.slack.listeners.answer_clicks import AnswerClicks
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.commands import COMMAND, ChartCommand, Commands
from bot.slack.listeners.home import Home
from bot.slack.listeners.message_intake import NOT_OURS, AskLimiter, MessageIntake
from bot.slack.listeners.ports import Form, IngressPorts, IngressSettings, Pressed
from bot.slack.listeners.proposal_clicks import ProposalClicks
from bot.slack.text.blocks import Part

_log = structlog.stdlib.get_logger(__name__)
_Body = Mapping[str, JsonValue]
_Event = TypeVar("_Event", bound=BaseModel)
# Called with the kind of the event. Raises StorageUnavailable.
Removed = Callable[[str], Awaitable[None]]


def register_events(
    app: AsyncApp, messages: MessageIntake, home: Home, settings: IngressSettings
) -> None:
    """Messages, Slack's own stop button, the home tab."""
    timeout_s = settings.handling_timeout_s

    async def message(body: _Body, request: AsyncBoltRequest) -> None:
        if (envelope := parsed(MessageEnvelope, body)) is not None:
            async with asyncio.timeout(timeout_s):
                await messages.take(envelope, _retry_number(request))

    async def home_opened(opened: HomeOpened) -> None:
        home.show(opened)

    app.event("app_mention")(message)
    app.event("message")(message)
    _listen(app, timeout_s, SessionStopped, messages.stopped, "agent_session_stopped")
    _listen(app, timeout_s, HomeOpened, home_opened, "app_home_opened")


def register_workspace_events(
    app: AsyncApp,
    settings: IngressSettings,
    ports: IngressPorts,
    forget_group: Callable[[str], None],
    removed: Removed,
) -> None:
    """Changed groups, renamed channels, channels that can be written to again, the app's removal."""
    identity, timeout_s = settings.identity, settings.handling_timeout_s

    async def group_changed(envelope: GroupChanged) -> None:
        forget_group(envelope.usergroup)

    async def renamed(envelope: ChannelRenamed) -> None:
        await ports.channel_renamed(identity.team, envelope.event.channel.id)

    async def reached(envelope: ChannelReached) -> None:
        if identity.is_addressee(envelope.installed_team, envelope.api_app_id):
            await ports.channel_reached(identity.team, ChannelId(envelope.event.channel))

    async def joined(envelope: ChannelReached) -> None:
        if envelope.event.user == identity.bot_user:
            await reached(envelope)

    async def remove(envelope: RemovedEvent) -> None:
        is_ours = identity.is_addressee(envelope.installed_team, envelope.api_app_id)
        if is_ours and envelope.event.is_ours:
            await removed(envelope.event.type)

    _listen(app, timeout_s, GroupChanged, group_changed, "subteam_members_changed")
    _listen(app, timeout_s, ChannelRenamed, renamed, "channel_rename", "group_rename")
    _listen(app, timeout_s, ChannelReached, joined, "member_joined_channel")
    _listen(app, timeout_s, ChannelReached, reached, "channel_unarchive", "group_unarchive")
    _listen(app, timeout_s, RemovedEvent, remove, "app_uninstalled", "tokens_revoked")


def _listen(
    app: AsyncApp,
    timeout_s: float,
    model: type[_Event],
    handle: Callable[[_Event], Awaitable[None]],
    *events: str,
) -> None:
    async def received(body: _Body) -> None:
        if (envelope := parsed(model, body)) is not None:
            async with asyncio.timeout(timeout_s):
                await handle(envelope)

    for event in events:
        app.event(event)(received)


def register_buttons(
    app: AsyncApp,
    identity: SlackIdentity,
    denials: Denials,
    buttons: Mapping[str | re.Pattern[str], Pressed],
) -> None:
    """The buttons and menus. Each is acknowledged first, so that no other listener can match it too."""

    def add(action: str | re.Pattern[str], handle: Pressed) -> None:
        async def pressed(ack: AsyncAck, body: _Body) -> None:
            await ack()
            payload = parsed(BlockActions, body)
            if payload is not None and await _is_ours(payload, identity, denials):
                await handle(click_of(payload, identity))

        app.action(action)(pressed)

    for action, handle in buttons.items():
        add(action, handle)


def register_forms(
    app: AsyncApp, identity: SlackIdentity, denials: Denials, forms: Mapping[str, Form]
) -> None:
    """The submitted forms. A refusal is shown in the form."""

    def add(callback: str, form: Form) -> None:
        async def submitted(ack: AsyncAck, body: _Body) -> None:
            payload = parsed(ViewSubmission, body)
            click = recall(payload, identity) if payload is not None else None
            refusal = ""
            if payload and click and await _is_ours(payload, identity, denials):
                refusal = await form.submit(click, payload.view)
            if not refusal:
                await ack()
            else:
                await ack(response_action="errors", errors={form.error_block: refusal})

        app.view(callback)(submitted)

    for callback, form in forms.items():
        add(callback, form)


async def _is_ours(
    payload: BlockActions | ViewSubmission, identity: SlackIdentity, denials: Denials
) -> bool:
    """Whether the payload is for this app and workspace; another one's is recorded."""
    team = installed_team(payload)
    if identity.is_addressee(team, payload.api_app_id):
        return True
    await denials.write(payload.user.id, NOT_OURS, {"team": team}, payload.trigger_id)
    return False


def register_commands(app: AsyncApp, commands: Commands, timeout_s: float) -> None:
    """The slash command; its answer is the acknowledgement, seen by the asker alone."""

    async def command(ack: AsyncAck, body: _Body) -> None:
        asked = parsed(SlashCommand, body)
        if asked is None:
            await ack()
            return
        try:
            async with asyncio.timeout(timeout_s):
                answer = await commands.answer(asked)
        except TimeoutError:
            answer = Part(replies.CANNOT_READ, ())
        blocks = list(answer.blocks) or None
        await ack(text=answer.text, blocks=blocks, response_type="ephemeral")

    app.command(COMMAND)(command)


def register_errors(app: AsyncApp) -> None:
    """A listener's error is logged without the payload; the response is Bolt's 500."""

    async def failed(error: Exception) -> None:
        if isinstance(error, StorageUnavailable | TimeoutError):
            _log.warning("slack.listener.interrupted", error=type(error).__name__)
        else:
            _log.error("slack.listener.failed", exc_info=error)

    app.error(failed)


async def log_removed(why: str) -> None:
    """For the configured token: only an operator can replace it."""
    _log.error("slack.app_removed", why=why)


def create_bolt(
    settings: IngressSettings,
    ports: IngressPorts,
    background: BackgroundTasks,
    forget_group: Callable[[str], None] = lambda _: None,
    removed: Removed = log_removed,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncApp:
    """An app with every listener registered; it opens no connection of its own.

    It calls `forget_group` when a user group's members change, and `removed` when the app may have
    been removed from the workspace. `background` holds side jobs of the listeners: drain it at shutdown.
    """
    app = _app(settings)
    identity, denials = settings.identity, Denials(ports.audit)
    messages = MessageIntake(settings, ports, background, denials, clock)
    register_events(app, messages, Home(settings, ports, background), settings)
    register_workspace_events(app, settings, ports, forget_group, removed)
    proposals = ProposalClicks(settings, ports, background, clock)
    answers = AnswerClicks(settings, ports, background)
    register_forms(app, identity, denials, {**proposals.forms(), **answers.forms()})
    register_buttons(app, identity, denials, {**proposals.buttons(), **answers.buttons()})
    each = settings.asks_per_minute
    charts = ChartCommand(ports, background, AskLimiter(each, 60.0, clock) if each else None)
    register_commands(app, Commands(settings, ports, charts), settings.handling_timeout_s)
    register_errors(app)
    return app


def _retry_number(request: AsyncBoltRequest) -> int:
    found = request.headers.get("x-slack-retry-num", ["0"])[0]
    return int(found) if found.isascii() and found.isdigit() and len(found) < 4 else 0


def _app(settings: IngressSettings) -> AsyncApp:
    logger = framework_logger()
    logger.addFilter(_is_not_about_token)
    return AsyncApp(
        name="kortex",
        logger=logger,
        # Acknowledge after the listener, so that every acknowledged event is stored.
        process_before_response=True,
        signing_secret=settings.signing_secret,
        # Bolt gets no token: it calls nothing. Its own authorization would ask auth.test inside the
        # first event and acknowledge that event with an apology when Slack answers badly; with
        # SLACK_CLIENT_ID in the environment it would turn to OAuth and drop the token. A given
        # `authorize` wins over both.
        client=AsyncWebClient(logger=logger),
        authorize=_authorize(settings.identity),
        ssl_check_enabled=False,  # it answers unsigned bodies
        attaching_function_token_enabled=False,
        attaching_conversation_kwargs_enabled=False,
    )


def _is_not_about_token(record: logging.LogRecord) -> bool:
    """Bolt finds SLACK_BOT_TOKEN in the environment and warns that it does not use it; Kortex does."""
    return record.getMessage() != warning_client_prioritized_and_token_skipped()


def _authorize(identity: SlackIdentity) -> Callable[[], Awaitable[AuthorizeResult]]:
    result = AuthorizeResult(
        enterprise_id=identity.enterprise or None,
        team_id=identity.team,
        bot_user_id=identity.bot_user,
        bot_id=identity.bot_id,
    )

    async def authorize() -> AuthorizeResult:
        return result

    return authorize
