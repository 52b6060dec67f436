"""`/slack/install` and `/slack/oauth_redirect`: slack-bolt's OAuth flow over our tables.

Denied by default: a workspace that is not named gets a refusal, and the app is uninstalled from it.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from logging import Logger
from typing import Final

import aiohttp
import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.error import BoltError
from slack_bolt.oauth.async_callback_options import (
    AsyncCallbackOptions,
    AsyncFailureArgs,
    AsyncSuccessArgs,
)
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackClientError
from slack_sdk.oauth.installation_store import Installation
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.domain.ids import TeamId, UserId
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.installations import Installations, Installed, OAuthStates
from bot.slack.api.web_api import WebApi, create_api
from bot.slack.ingress.denials import Denials
from bot.slack.ingress.http_mode import UNREADABLE
from bot.slack.ingress.startup import site_of

_log = structlog.stdlib.get_logger(__name__)
INSTALL_PATH: Final = "/slack/install"
REDIRECT_PATH: Final = "/slack/oauth_redirect"
# What the app asks a workspace for; `app-manifest.yml` says what each is for.
BOT_SCOPES: Final = (
    "app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write",
    "commands", "files:read", "files:write", "groups:history", "groups:read", "im:history",
    "mpim:read", "usergroups:read", "users:read", "users:read.email",
)  # fmt: skip
_TIMEOUT_S: Final = 20.0  # two calls of Slack's and two transactions
_TEAM: Final = re.compile(r"[TE][A-Z0-9]{2,20}", re.ASCII)
_REASON: Final = re.compile(r"[a-z_]{1,64}", re.ASCII)
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address of the redirect holds a code
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}
# Slack was away, or answered something that its own library trips over.
_ASKED_IN_VAIN: Final = (SurfaceFailed, SurfaceGone, SlackClientError, aiohttp.ClientError, OSError)
_BUSY: Final = (
    "Not installed: this could not be stored, or too many installations are running. Try again."
)

_NOT_ALLOWED: Final = (
    "this workspace cannot install this app: an operator of Kortex must allow it first"
)
_ORGANISATION: Final = "install it in one workspace: whole organisations are not supported"
_EXPIRING: Final = "turn off token rotation for this app: tokens that expire are not supported"
_OTHER_APP: Final = "the token that Slack gave is another app's or workspace's"
_IS_HOME: Final = "this workspace is already connected, by the token in Kortex' configuration"
# Of any other refusal an installation of before may go on working.
_TAKEN_OUT: Final = frozenset({_NOT_ALLOWED, _ORGANISATION})


class _Denied(BoltError):
    by = "slack"
    team = ""


@dataclass(frozen=True, slots=True)
class InstallRules:
    """`is_allowed` is asked at the end of each installation. `app_id` "" is unknown and not checked."""

    client_id: str
    client_secret: str = field(repr=False)
    api_base_url: str
    redirect_url: str
    home: TeamId
    app_id: str
    is_allowed: Callable[[TeamId], bool]


class _Rows(AsyncInstallationStore):
    def __init__(self, installations: Installations) -> None:
        self._installations = installations

    @property
    def logger(self) -> Logger:
        return _silent()

    async def async_save(self, installation: Installation) -> None:
        await self._installations.save(
            Installed(
                TeamId(installation.team_id or ""),
                UserId(installation.bot_user_id or ""),
                installation.bot_id or "",
                installation.bot_token or "",
                installation.app_id or "",
                installation.enterprise_id or "",
                str(installation.get_custom_value("site") or ""),
            ),
            installation.user_id or "slack",
        )


class _States(AsyncOAuthStateStore):
    def __init__(self, states: OAuthStates) -> None:
        self._states = states

    @property
    def logger(self) -> Logger:
        return _silent()

    async def async_issue(self, *_args: object, **_more: object) -> str:
        state = await self._states.issue()
        if state is None:
            raise StorageUnavailable("too many installations are running")
        return state

    async def async_consume(self, state: str) -> bool:
        return await self._states.consume(state)


class _Client(AsyncWebClient):
    """Names the app in the form: the SDK's way is deprecated in aiohttp, and a warning each time."""

    async def oauth_v2_access(
        self,
        *,
        client_id: str,
        client_secret: str,
        code: str | None = None,
        redirect_uri: str | None = None,
        grant_type: str | None = None,  # noqa: ARG002 - as the SDK's
        refresh_token: str | None = None,  # noqa: ARG002 - as the SDK's
        **_more: object,
    ) -> AsyncSlackResponse:
        form = {"client_id": client_id, "client_secret": client_secret, "code": code or ""}
        if redirect_uri:
            form["redirect_uri"] = redirect_uri
        return await self.api_call("oauth.v2.access", data=form)


class _Flow(AsyncOAuthFlow):
    """Slack's flow, which keeps only what we let in."""

    def __init__(
        self, rules: InstallRules, settings: AsyncOAuthSettings, session: aiohttp.ClientSession
    ) -> None:
        client = _Client(
            base_url=rules.api_base_url, session=session, retry_handlers=[], logger=_silent()
        )
        super().__init__(client=client, logger=_silent(), settings=settings)
        self._rules = rules
        self._session = session

    async def build_authorize_url(self, state: str, request: AsyncBoltRequest) -> str:
        wanted = next(iter(request.query.get("team", ())), "")
        team = wanted if _TEAM.fullmatch(wanted) else None
        return self.settings.authorize_url_generator.generate(state=state, team=team)

    async def store_installation(
        self, request: AsyncBoltRequest, installation: Installation
    ) -> None:
        api = create_api(installation.bot_token or "", self._rules.api_base_url, self._session)
        try:
            installation.set_custom_value("site", await self._judged(api, installation))
        except _Denied as denied:
            denied.by, denied.team = installation.user_id or "slack", installation.team_id or ""
            if str(denied) in _TAKEN_OUT:
                await self._take_out(api)
            raise
        await super().store_installation(request, installation)

    async def _judged(self, api: WebApi, installation: Installation) -> str:
        if installation.is_enterprise_install or not installation.team_id:
            raise _Denied(_ORGANISATION)
        team = TeamId(installation.team_id)
        if team == self._rules.home:
            raise _Denied(_IS_HOME)
        if not self._rules.is_allowed(team):
            raise _Denied(_NOT_ALLOWED)
        if installation.bot_refresh_token or installation.bot_token_expires_at:
            raise _Denied(_EXPIRING)
        told = await api.call("auth.test")
        same_app = self._rules.app_id in ("", installation.app_id)
        is_whole = bool(installation.bot_id and _TEAM.fullmatch(team))
        if not same_app or told.get("team_id") != team or not is_whole:
            raise _Denied(_OTHER_APP)
        return site_of(str(told.get("url") or ""))

    async def _take_out(self, api: WebApi) -> None:
        secrets = {"client_id": self._rules.client_id, "client_secret": self._rules.client_secret}
        try:
            await api.client.api_call("apps.uninstall", data=secrets)
        except (SlackClientError, aiohttp.ClientError, ValueError) as error:
            _log.warning("slack.install.not_removed", error=type(error).__name__)


class Installing:
    """The two routes. `installed` is called for each accepted workspace."""

    def __init__(
        self,
        rules: InstallRules,
        installations: Installations,
        states: OAuthStates,
        denials: Denials,
        session: aiohttp.ClientSession,
        installed: Callable[[TeamId], Awaitable[None]],
    ) -> None:
        self._denials = denials
        self._installed = installed
        settings = AsyncOAuthSettings(
            client_id=rules.client_id,
            client_secret=rules.client_secret,
            scopes=BOT_SCOPES,
            user_scopes=(),
            redirect_uri=rules.redirect_url or None,
            install_path=INSTALL_PATH,
            redirect_uri_path=REDIRECT_PATH,
            install_page_rendering_enabled=False,
            authorization_url=_authorization_url(rules.api_base_url),
            installation_store=_Rows(installations),
            state_store=_States(states),
            callback_options=AsyncCallbackOptions(self._succeeded, self._failed),
            logger=_silent(),
        )
        self._flow = _Flow(rules, settings, session)

    def routes(self) -> Sequence[web.RouteDef]:
        """Both are GET, for the installer's browser."""
        return [
            web.get(INSTALL_PATH, self._handler(self._flow.handle_installation), allow_head=False),
            web.get(REDIRECT_PATH, self._handler(self._flow.handle_callback), allow_head=False),
        ]

    def _handler(
        self, handle: Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            asked = AsyncBoltRequest(
                body="",
                query=request.query_string,
                headers={"cookie": request.headers.get("cookie", "")},
            )
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    answered = await to_aiohttp_response(await handle(asked))
            except (StorageUnavailable, TimeoutError):
                answered = web.Response(status=503, text=_BUSY)
            except (*_ASKED_IN_VAIN, *UNREADABLE) as error:
                _log.warning("slack.install.failed", error=type(error).__name__)
                answered = web.Response(status=502, text="Slack could not be asked. Try again.")
            answered.headers.update(_HEADERS)
            return answered

        return answer

    async def _succeeded(self, args: AsyncSuccessArgs) -> BoltResponse:
        team = TeamId(args.installation.team_id or "")
        _log.info("slack.install.completed", team=team)
        await self._installed(team)
        return await args.default.success(args)

    async def _failed(self, args: AsyncFailureArgs) -> BoltResponse:
        """Reasons come from the address as well: only words of Slack's kind are shown."""
        if isinstance(args.error, _Denied):
            args.reason, args.suggested_status_code = str(args.error), 403
            about = {"team": args.error.team, "because": args.reason}
            await self._denials.write(args.error.by, "not installed", about, "")
        elif not _REASON.fullmatch(args.reason):
            args.reason = "unknown_error"
        _log.info("slack.install.refused", why=args.reason)
        return await args.default.failure(args)


def _authorization_url(api_base_url: str) -> str:
    return f"{api_base_url.rstrip('/').removesuffix('/api')}/oauth/v2/authorize"


def _silent() -> Logger:
    """The flow's own logger would write codes; what went wrong is logged here."""
    logger = logging.getLogger("kortex.slack_oauth")
    logger.setLevel(logging.CRITICAL)
    return logger
