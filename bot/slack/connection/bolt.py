"""The Bolt app: how Slack's framework is set up, and which listeners it has."""

import time
from collections.abc import Awaitable, Callable
from functools import partial

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.connection.listeners import (
    register_changes,
    register_clicks,
    register_commands,
    register_errors,
    register_events,
    register_forms,
)
from bot.slack.connection.socket_ingress import framework_logger
from bot.slack.handling.answer_clicks import AnswerClicks
from bot.slack.handling.commands import Commands
from bot.slack.handling.denials import Denials
from bot.slack.handling.errands import Errands
from bot.slack.handling.home import Home
from bot.slack.handling.ingress_ports import IngressPorts, IngressSettings
from bot.slack.handling.message_intake import MessageIntake
from bot.slack.handling.proposal_clicks import ProposalClicks
from bot.slack.received.identity import SlackIdentity


def create_bolt(
    settings: IngressSettings,
    ports: IngressPorts,
    errands: Errands,
    forget_group: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncApp:
    """An app with every listener registered; it opens no connection of its own.

    `forget_group` is told of user groups whose members changed. `errands` holds what runs beside
    the listeners: drain it at shutdown.
    """
    app = _app(settings)
    timeout_s = settings.handling_timeout_s
    denials = Denials(ports.audit)
    register_events(
        app,
        MessageIntake(settings, ports, errands, denials, clock),
        Home(settings, ports, errands),
        timeout_s,
    )
    renamed = partial(ports.channel_renamed, settings.identity.team)
    register_changes(app, forget_group, renamed, timeout_s)
    proposals = ProposalClicks(ports, errands, clock, timeout_s)
    register_forms(app, settings.identity, proposals, denials)
    register_clicks(
        app,
        settings.identity,
        proposals,
        AnswerClicks(settings.identity, ports, errands, timeout_s),
        denials,
    )
    register_commands(app, Commands(settings, ports), timeout_s)
    register_errors(app)
    return app


def _app(settings: IngressSettings) -> AsyncApp:
    logger = framework_logger()
    return AsyncApp(
        name="kortex",
        logger=logger,
        # Acknowledge after the listener, so that what is acknowledged is stored.
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
