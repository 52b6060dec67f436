"""Who may show a token of an identity provider, and how people sign in to the page."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import structlog
from aiohttp import web
from pydantic import JsonValue

from bot.settings.http import OidcSettings
from bot.settings.model import Settings
from bot.settings.page import PageSettings
from bot.settings.reading import needing_extra
from bot.web.api.callers import CallerDoor, ClaimRules, ClaimsOf
from bot.web.page import PageSessions, page_routes

if TYPE_CHECKING:
    from adapters.oidc.tokens import OidcTokens

log = structlog.get_logger(__name__)


def checked_claims(settings: OidcSettings) -> ClaimsOf | None:
    """What the configured provider says of whoever shows a token of it. Raises ConfigurationError."""
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


def make_tokens(settings: OidcSettings) -> "OidcTokens":
    """The check of the provider's tokens. Raises ConfigurationError without the extra."""
    with needing_extra("oidc", "oidc.issuer"):
        from adapters.oidc.tokens import Issuer, OidcTokens

    issuer = Issuer(settings.issuer, settings.audience, settings.algorithms, settings.jwks_url)
    return OidcTokens(issuer, time.monotonic)


def claim_rules(settings: OidcSettings) -> ClaimRules:
    """How claims become a caller."""
    return ClaimRules(
        settings.name_claim, settings.roles_claim, settings.roles, settings.account_claim
    )


def page_sessions(page: PageSettings) -> PageSessions:
    """Whose cookies are taken."""
    hosts = frozenset(name.lower() for name in page.hosts)
    return PageSessions(hosts, round(page.sign_in_lasts.total_seconds()))


def page_of(
    settings: Settings, door: CallerDoor, claims_of: ClaimsOf | None
) -> Sequence[web.RouteDef]:
    """The page's routes; none where it is switched off."""
    if not settings.page.enabled:
        return []
    sessions, oidc = page_sessions(settings.page), settings.oidc
    hosts = settings.slack.link_hosts
    if claims_of is None or not oidc.sign_in:
        return page_routes(sessions, door.shown, link_hosts=hosts)
    with needing_extra("oidc", "oidc.sign_in"):
        from adapters.oidc.sign_in import OidcSignIn, SignInClient
    from bot.web.page_sign_in import ProviderDoor

    secret = oidc.client_secret.get_secret_value()
    at_provider = OidcSignIn(SignInClient(oidc.issuer, oidc.audience, secret))
    return [
        *page_routes(sessions, door.shown, at_provider=True, link_hosts=hosts),
        *ProviderDoor(at_provider, claims_of, door.shown, sessions).routes(),
    ]
