"""The HTTP API and the page: who may call, conversations over HTTP, and reports for operators."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog
from aiohttp import web
from pydantic import JsonValue

from bot.actions.judge import Judge
from bot.actions.versions import VersionCheck
from bot.app import rules
from bot.app.audit import outside_checkpoints
from bot.app.build import Base
from bot.app.conversation import Conversation
from bot.app.http_access import make_tokens
from bot.app.platforms import Directory, Platform
from bot.app.workspace import SlackWorkspace, deploys_of, providers_report, tools_report
from bot.audit.verify import Summary
from bot.chat.budget_report import BudgetReport, budget_report
from bot.domain.channel import rule_for
from bot.domain.chats import ChatSession
from bot.domain.ids import API, MessageTs, Place, TeamId, UserId
from bot.domain.proposal import Proposal
from bot.domain.tenancy import HOME
from bot.engine.engine import Engine
from bot.ports.platform import NamedByPlace
from bot.settings.http import OidcSettings
from bot.settings.model import Settings
from bot.settings.page import PageSettings
from bot.settings.reading import needing_extra
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.ledger import StoredLedger
from bot.store.overview import StoredOverview
from bot.web.api.caller_permissions import CallerPermissions
from bot.web.api.callers import CallerAuthenticator, ClaimRules, ClaimsOf, Rate, no_cookie
from bot.web.api.chat.notifier import ChatNotifier
from bot.web.api.chat.people import CallerRoles, HomeRoles
from bot.web.api.chat.stream import ChatServices
from bot.web.api.chat.surface import ChatLogSurface
from bot.web.api.document import document_route
from bot.web.api.naming import Naming
from bot.web.api.operations import Operation, routes
from bot.web.api.proposals import Deciding
from bot.web.api.reports import Reports, Verified
from bot.web.api.sessions import Conversations
from bot.web.api.streams import OpenStreams, Streams
from bot.web.page import PageSessions, page_routes

log = structlog.get_logger(__name__)

ASKS_PER_MINUTE = 20  # of one caller; as of a person in Slack
PAGE_ROWS = 1_000  # of the audit log judged at a stretch on the loop: some 8 ms


@dataclass(frozen=True, slots=True)
class Chats:
    """Conversations over HTTP. `platform` is where turns and cards reach them."""

    platform: Platform
    people: CallerRoles
    notifier: ChatNotifier


async def open_chats(base: Base, stack: AsyncExitStack) -> Chats:
    """Answers grow as long as the stack is open."""
    notifier, people = ChatNotifier(), CallerRoles(base.stores.callers)

    def redact(session: ChatSession, text: str) -> str:
        with base.placeholders.within(session.place.key):
            return base.redactor.redact(text)

    def products_of(channel: str) -> Sequence[str]:
        return rule_for(base.live_config.channels_at(API), channel).products

    surface = ChatLogSurface(ChatServices(base.stores.chats, redact, products_of, notifier.notify))
    await stack.enter_async_context(surface.running())
    directory = Directory(people.name, NamedByPlace(), people)
    platform = Platform(surface, directory, surface.show_waiting, surface.show_in_line)
    return Chats(platform, people, notifier)


@dataclass(frozen=True, slots=True)
class HttpApi:
    """The API's routes and its callers; `streams.closing` ends the open streams."""

    routes: Sequence[web.RouteDef]
    operations: Sequence[Operation]
    authenticator: CallerAuthenticator
    permissions: CallerPermissions
    streams: OpenStreams


def http_api(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    chats: Chats,
    home: SlackWorkspace,
    processes: int,
) -> HttpApi:
    """Over this process's engine; callers get this process's part of each limit.

    Raises ConfigurationError.
    """
    settings, stores = base.settings.http, base.stores
    claims_of = checked_claims(base.settings.oidc)
    streams = OpenStreams(_part(settings.callers.streams, processes))
    authenticator = _authenticator(base, home.team, claims_of, processes)
    roles = HomeRoles({home.team: home.roles, API: chats.people})
    force = base.live_config
    permissions = CallerPermissions(
        roles, force.channels_of(HOME), force.admin_roles, _is_home(base), stores.audit
    )

    async def name_of(user: UserId) -> str:
        return await (chats.people.name if user.startswith("@") else home.directory.name_of)(user)

    naming = Naming(stores.names.last_read, name_of, _link_of(home), time.monotonic)
    deciding = _deciding(base, conversation, engine, permissions, name_of, naming)
    conversations = Conversations(
        stores.chats,
        stores.sessions,
        permissions,
        engine,
        engine,
        base.redactor,
        base.placeholders,
        Streams(stores.chats, chats.notifier, base.placeholders, authenticator, streams),
        Rate(_part(ASKS_PER_MINUTE, processes), time.monotonic),
    )
    operations = (
        *conversations.operations(),
        *deciding.operations(),
        *_reports(base, conversation, permissions, naming).operations(),
    )
    served = [*routes(operations, authenticator), document_route(operations)]
    if settings.nirmata_wire:
        from bot.web.api.nirmata import NirmataWire

        served += NirmataWire(authenticator, conversations).routes()
    served += page_of(base.settings, authenticator, claims_of)
    return HttpApi(served, operations, authenticator, permissions, streams)


def _deciding(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    permissions: CallerPermissions,
    name_of: Callable[[UserId], Awaitable[str]],
    naming: Naming,
) -> Deciding:
    stores = base.stores
    return Deciding(
        stores.proposals,
        StoredOverview(stores.database, HOME),
        permissions,
        Judge(
            permissions.roles,
            conversation.channel_now,
            base.actions.roles_of,
            base.freezes,
            name_of,
        ),
        engine,
        stores.audit,
        base.redactor,
        name_of,
        naming,
        VersionCheck(partial(deploys_of, base)).warning,
    )


def _part(limit: int, processes: int) -> int:
    return max(1, limit // processes)


def _authenticator(
    base: Base, home: TeamId, claims_of: ClaimsOf | None, processes: int
) -> CallerAuthenticator:
    settings = base.settings.http
    rate = Rate(_part(settings.callers.requests_per_minute, processes), time.monotonic)
    token = settings.api_token.get_secret_value()
    page, told = base.settings.page, claim_rules(base.settings.oidc)
    cookie_of = page_sessions(page).token if page.enabled else no_cookie
    return CallerAuthenticator(base.stores.callers, token, home, rate, claims_of, told, cookie_of)


def _is_home(base: Base) -> Callable[[Proposal], bool]:
    return lambda row: base.live_config.tenant_of(row.place.team) == HOME


def _link_of(home: SlackWorkspace) -> Callable[[Place, MessageTs], str]:
    threads = home.directory.threads

    def link(place: Place, ts: MessageTs) -> str:
        return threads.link(place, ts) if threads and place.team == home.team else ""

    return link


def _reports(
    base: Base, conversation: Conversation, permissions: CallerPermissions, naming: Naming
) -> Reports:
    stores, limits = base.stores, rules.budget_limits(base.settings)
    tell_providers, tell_tools = providers_report(base), tools_report(base, conversation)

    async def providers() -> JsonValue:
        return [status.as_json() for status in await tell_providers()]

    async def budget() -> BudgetReport:
        return await budget_report(StoredLedger(stores.database, HOME), limits)

    async def tools() -> JsonValue:
        return tell_tools().as_json()

    keys = rules.audit_keys(base.settings)

    async def whole() -> Summary:
        witnesses = await asyncio.to_thread(outside_checkpoints, base.settings)
        return await verify(stores.audit_reader, keys, witnesses, page_rows=PAGE_ROWS)

    verified = Verified(whole, lambda: datetime.now(UTC), time.monotonic)
    overview = StoredOverview(stores.database, HOME)
    return Reports(
        permissions,
        lambda: tuple(base.live_config.roles),
        providers,
        budget,
        tools,
        overview,
        StoredAuditReader(stores.database, HOME),
        verified,
        naming,
    )


def checked_claims(settings: OidcSettings) -> ClaimsOf | None:
    """Reads the claims of a token from the configured provider. Raises ConfigurationError."""
    if not settings.issuer:
        return None
    tokens = make_tokens(settings)
    from adapters.oidc.tokens import TokenRefused

    async def claims_of(token: str) -> Mapping[str, JsonValue] | None:
        try:
            return await tokens.claims(token)
        except TokenRefused as error:
            log.info("oidc.refused", why=str(error))
            return None

    return claims_of


def claim_rules(settings: OidcSettings) -> ClaimRules:
    return ClaimRules(
        settings.name_claim, settings.roles_claim, settings.roles, settings.account_claim
    )


def page_sessions(page: PageSettings) -> PageSessions:
    """Which hosts' sign-in cookies the page accepts, and for how long."""
    hosts = frozenset(name.lower() for name in page.hosts)
    return PageSessions(hosts, round(page.sign_in_lasts.total_seconds()))


def page_of(
    settings: Settings, authenticator: CallerAuthenticator, claims_of: ClaimsOf | None
) -> Sequence[web.RouteDef]:
    """The page's routes; none where it is switched off."""
    if not settings.page.enabled:
        return []
    sessions, oidc = page_sessions(settings.page), settings.oidc
    hosts = settings.slack.link_hosts
    if claims_of is None or not oidc.sign_in:
        return page_routes(sessions, authenticator.caller_of, link_hosts=hosts)
    with needing_extra("oidc", "oidc.sign_in"):
        from adapters.oidc.sign_in import OidcSignIn, SignInClient
    from bot.web.page_sign_in import SignInRoutes

    secret = oidc.client_secret.get_secret_value()
    at_provider = OidcSignIn(SignInClient(oidc.issuer, oidc.audience, secret))
    return [
        *page_routes(sessions, authenticator.caller_of, at_provider=True, link_hosts=hosts),
        *SignInRoutes(at_provider, claims_of, authenticator.caller_of, sessions).routes(),
    ]
