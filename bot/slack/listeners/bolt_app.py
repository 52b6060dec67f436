"""The Bolt app: its listeners acknowledge, parse and hand over.

Listeners run before the response (`process_before_response`): an event is acknowledged only after
its durable start. An error is a 500 (HTTP) or no acknowledgement (Socket Mode), and Slack delivers
again.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from bot.slack.ingress.clicks import Click, click_of, installed_team, recall
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
    View,
    ViewSubmission,
    parsed,
)
from bot.slack.ingress.payloads import Removed as RemovedEvent
from bot.slack.listeners import replies
from bot.slack.listeners.answer_clicks import AnswerClicks, FeedbackClicks
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.commands import COMMAND, ChartCommand, Commands
from bot.slack.listeners.home import Home
from bot.slack.listeners.message_intake import NOT_OURS, AskLimiter, MessageIntake
from bot.slack.listeners.ports import IngressPorts, IngressSettings
from bot.slack.listeners.proposal_clicks import ProposalClicks
from bot.slack.text.blocks import Part
from bot.slack.views.cards import EDIT_ACTION, RAW_ACTION
from bot.slack.views.modals import (
    EDIT_CALLBACK,
    FEEDBACK_ACTION,
    FEEDBACK_CALLBACK,
    REASON_BLOCK,
    REASON_INPUT,
    REJECT_CALLBACK,
    field_block,
)
from bot.slack.views.sources import LINK_ACTION, OPEN_ACTION, OVERVIEW_ACTION, SELECT_ACTION
from bot.slack.views.sources import RAW_ACTION as RAW_EVIDENCE

_log = structlog.stdlib.get_logger(__name__)
_Body = Mapping[str, JsonValue]
_Event = TypeVar("_Event", bound=BaseModel)
_Handle = Callable[[Click], Awaitable[None]]
# Called with the kind of the event. Raises StorageUnavailable.
Removed = Callable[[str], Awaitable[None]]
_Submit = Callable[[Click, View], Awaitable[str]]
FEEDBACK_BUTTON = re.compile(rf"{FEEDBACK_ACTION}(?::(?:up|down))?", re.ASCII)
EVIDENCE_BUTTON = re.compile(rf"{OPEN_ACTION}:[0-9]{{1,4}}", re.ASCII)


def register_events(app: AsyncApp, messages: MessageIntake, home: Home, timeout_s: float) -> None:
    """Messages, Slack's own stop button, the home tab."""

    async def message(body: _Body, request: AsyncBoltRequest) -> None:
        if (envelope := parsed(MessageEnvelope, body)) is not None:
            async with asyncio.timeout(timeout_s):
                await messages.take(envelope, _retry_number(request))

    async def home_opened(opened: HomeOpened) -> None:
        home.show(opened)

    app.event("app_mention")(message)
    app.event("message")(message)
    _listen(app, ("agent_session_stopped",), SessionStopped, messages.stopped, timeout_s)
    _listen(app, ("app_home_opened",), HomeOpened, home_opened, timeout_s)


def register_workspace_events(
    app: AsyncApp,
    identity: SlackIdentity,
    ports: IngressPorts,
    forget_group: Callable[[str], None],
    removed: Removed,
    timeout_s: float,
) -> None:
    """Changed groups, renamed channels, channels that can be written to again, the app's removal."""

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

    _listen(app, ("subteam_members_changed",), GroupChanged, group_changed, timeout_s)
    _listen(app, ("channel_rename", "group_rename"), ChannelRenamed, renamed, timeout_s)
    _listen(app, ("member_joined_channel",), ChannelReached, joined, timeout_s)
    _listen(app, ("channel_unarchive", "group_unarchive"), ChannelReached, reached, timeout_s)
    _listen(app, ("app_uninstalled", "tokens_revoked"), RemovedEvent, remove, timeout_s)


def _listen(
    app: AsyncApp,
    events: Sequence[str],
    model: type[_Event],
    handle: Callable[[_Event], Awaitable[None]],
    timeout_s: float,
) -> None:
    async def received(body: _Body) -> None:
        if (envelope := parsed(model, body)) is not None:
            async with asyncio.timeout(timeout_s):
                await handle(envelope)

    for event in events:
        app.event(event)(received)


def register_clicks(
    app: AsyncApp,
    identity: SlackIdentity,
    proposals: ProposalClicks,
    answers: AnswerClicks,
    feedback: FeedbackClicks,
    denials: Denials,
) -> None:
    """The buttons and menus. Each is acknowledged first, so that no other listener can match it too."""

    def add(action: str | re.Pattern[str], handle: _Handle) -> None:
        async def pressed(ack: AsyncAck, body: _Body) -> None:
            await ack()
            payload = parsed(BlockActions, body)
            if payload is None:
                return
            if not identity.is_addressee(installed_team(payload), payload.api_app_id):
                await _deny(denials, payload)
                return
            await handle(click_of(payload, identity))

        app.action(action)(pressed)

    add("proposal:confirm", proposals.confirm)
    add("proposal:reject", proposals.open_rejection)
    add(EDIT_ACTION, proposals.open_edit)
    add(RAW_ACTION, proposals.open_raw)
    add("turn:stop", answers.stop)
    add(OVERVIEW_ACTION, answers.open_overview)
    add(EVIDENCE_BUTTON, answers.open_evidence)
    add(SELECT_ACTION, answers.open_evidence)
    add(RAW_EVIDENCE, answers.open_raw)
    add(LINK_ACTION, _nothing)
    add(FEEDBACK_BUTTON, feedback.vote)


def register_forms(
    app: AsyncApp,
    identity: SlackIdentity,
    proposals: ProposalClicks,
    feedback: FeedbackClicks,
    denials: Denials,
) -> None:
    """The submitted forms. A refusal is shown in the form."""

    def add_form(callback: str, error_block: str, handle: _Submit) -> None:
        async def submitted(ack: AsyncAck, body: _Body) -> None:
            payload = parsed(ViewSubmission, body)
            click = recall(payload, identity) if payload is not None else None
            if payload is None or click is None:
                await ack()
                return
            if not identity.is_addressee(installed_team(payload), payload.api_app_id):
                await ack()
                await _deny(denials, payload)
                return
            refusal = await handle(click, payload.view)
            if not refusal:
                await ack()
            else:
                await ack(response_action="errors", errors={error_block: refusal})

        app.view(callback)(submitted)

    async def reject(click: Click, view: View) -> str:
        refusal = await proposals.reject(click, view.answer(REASON_BLOCK, REASON_INPUT))
        return refusal.text if refusal else ""

    async def edit(click: Click, view: View) -> str:
        blocks = [field_block(number) for number in range(len(view.state.values))]
        answers = [view.answer(block, block) for block in blocks]
        refusal = await proposals.edit(click, answers)
        return refusal.text if refusal else ""

    async def explain(click: Click, view: View) -> str:
        return await feedback.explain(click, view.answer(REASON_BLOCK, REASON_INPUT))

    add_form(REJECT_CALLBACK, REASON_BLOCK, reject)
    add_form(EDIT_CALLBACK, field_block(0), edit)
    add_form(FEEDBACK_CALLBACK, REASON_BLOCK, explain)


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


async def _nothing(_click: Click) -> None: ...


async def _deny(denials: Denials, payload: BlockActions | ViewSubmission) -> None:
    await denials.write(
        payload.user.id, NOT_OURS, {"team": installed_team(payload)}, payload.trigger_id
    )


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
    timeout_s = settings.handling_timeout_s
    denials = Denials(ports.audit)
    register_events(
        app,
        MessageIntake(settings, ports, background, denials, clock),
        Home(settings, ports, background),
        timeout_s,
    )
    register_workspace_events(app, settings.identity, ports, forget_group, removed, timeout_s)
    proposals = ProposalClicks(ports, background, clock, timeout_s)
    feedback = FeedbackClicks(settings.identity, ports, background, timeout_s)
    register_forms(app, settings.identity, proposals, feedback, denials)
    register_clicks(
        app,
        settings.identity,
        proposals,
        AnswerClicks(settings.identity, ports, background, timeout_s, settings.evidence_links),
        feedback,
        denials,
    )
    charts = ChartCommand(ports, background, _chart_limiter(settings, clock))
    register_commands(app, Commands(settings, ports, charts), timeout_s)
    register_errors(app)
    return app


def _retry_number(request: AsyncBoltRequest) -> int:
    found = request.headers.get("x-slack-retry-num", ["0"])[0]
    return int(found) if found.isascii() and found.isdigit() and len(found) < 4 else 0


def _chart_limiter(settings: IngressSettings, clock: Callable[[], float]) -> AskLimiter | None:
    each = settings.asks_per_minute
    return AskLimiter(each, 60.0, clock) if each else None


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
