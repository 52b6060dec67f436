"""Clients of outside servers from settings: addresses, credentials, certificates, proxies.

Reads certificates, so it runs in a thread."""

import base64
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import httpx

from adapters.control_plane.client import HttpControlPlane
from adapters.control_plane.orders import Executors, Rehearsal
from adapters.control_plane.pipelines import GitHub, GitLab, Pipelines
from adapters.control_plane.port import ExecutorKind
from adapters.http.client import http_client
from adapters.http.tls import FileUnusable, own_trust
from adapters.http.transport import Route
from bot.settings.access import AUTHORIZATION, AccessSettings, RouteSettings
from bot.settings.http import OidcSettings
from bot.settings.model import ControlPlaneSettings
from bot.settings.reading import ConfigurationError, needing_extra

if TYPE_CHECKING:
    from adapters.oidc.tokens import OidcTokens


BACKEND_CONNECTIONS: Final = 32  # per backend: more parallel queries would queue there anyway


def backend_client(
    url: str, settings: RouteSettings, key: str, stack: AsyncExitStack
) -> httpx.AsyncClient:
    """A client with `url` as its base that reaches that host alone, already authenticated.

    `key` is what an error names, such as `observe.logs.url`; the stack closes the client. A name
    and password in the address (`https://user:pass@loki`) are sent as basic credentials.
    Raises ConfigurationError.
    """
    try:
        parts = urlsplit(url.strip().rstrip("/"))
        host, port = parts.hostname, parts.port
        httpx.URL(url.strip())
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigurationError(f"{key}: not an address: {error}") from error
    if not host or parts.scheme not in {"http", "https"}:
        raise ConfigurationError(f"{key}: needs an address such as http://loki:3100")
    named = f"[{host}]" if ":" in host else host
    address = parts._replace(netloc=f"{named}:{port}" if port else named)
    route = route_of(settings, key)
    client = http_client(
        base_url=urlunsplit(address),
        headers=_in_the_address(parts, route, key),
        connect_s=route.connect_s,
        read_s=route.read_s,
        max_connections=BACKEND_CONNECTIONS,
        allowed_hosts=frozenset({host}),
        tls=route.tls,
        proxy=route.proxy,
    )
    stack.push_async_callback(client.aclose)
    return client


def orders_client(plane: ControlPlaneSettings, stack: AsyncExitStack) -> httpx.AsyncClient:
    """The client for actions' orders and reads, at any address. Raises ConfigurationError.

    The host of `[control_plane] info_url` is reached by that table's route, without its
    credentials: a reading token may not order.
    """
    routes = {}
    if host := plane_host(plane):
        route = route_of(plane, "control_plane.info_url")
        own = tuple(each for each in route.headers if each[0].lower() != AUTHORIZATION)
        routes[host] = replace(route, headers=own)
    client = http_client(max_connections=BACKEND_CONNECTIONS, routes=routes)
    stack.push_async_callback(client.aclose)
    return client


def plane_host(plane: ControlPlaneSettings) -> str:
    """The control plane's host; empty without an address, or for an invalid one."""
    try:
        return urlsplit(plane.info_url.strip()).hostname or ""
    except ValueError:
        return ""


def route_of(settings: RouteSettings, key: str) -> Route:
    """Headers with the credentials, certificates, proxy and times. Raises ConfigurationError.

    `key` is one of its table, or `audit.events_access` for the table itself.
    """
    table = key.rpartition(".")[0] if key.endswith("url") else key
    try:
        tls = own_trust(settings.ca_file, settings.client_certificate, settings.client_key)
    except FileUnusable as error:
        raise ConfigurationError(f"{table}.{error}") from error
    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
    if isinstance(settings, AccessSettings):
        headers |= _credentials(settings)
    return Route(
        tuple(headers.items()),
        tls,
        settings.proxy,
        settings.connect_timeout.total_seconds(),
        settings.timeout.total_seconds(),
    )


def _credentials(access: AccessSettings) -> dict[str, str]:
    bearer = access.token.get_secret_value()
    if bearer:
        return {"Authorization": f"Bearer {bearer}"}
    if access.user:
        return {"Authorization": _basic(access.user, access.password.get_secret_value())}
    return {}


def _in_the_address(parts: SplitResult, route: Route, key: str) -> dict[str, str]:
    if parts.username is None:
        return dict(route.headers)
    if any(name.lower() == AUTHORIZATION for name, _ in route.headers):
        raise ConfigurationError(
            f"{key}: has a user in the address, and credentials beside it; set one of them"
        )
    pair = _basic(unquote(parts.username), unquote(parts.password or ""))
    return {**dict(route.headers), "Authorization": pair}


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def make_tokens(settings: OidcSettings) -> "OidcTokens":
    """The check of the provider's tokens. Raises ConfigurationError without the extra."""
    with needing_extra("oidc", "oidc.issuer"):
        from adapters.oidc.tokens import Issuer, OidcTokens

    issuer = Issuer(settings.issuer, settings.audience, settings.algorithms, settings.jwks_url)
    return OidcTokens(issuer, time.monotonic)


def make_executors(credentials: Callable[[str], str], client: httpx.AsyncClient) -> Executors:
    """`credentials` gives an action's token; it is asked when an order is sent, after a Confirm."""
    return Executors(
        {
            ExecutorKind.CONTROL_PLANE: HttpControlPlane(client, credentials),
            ExecutorKind.GITHUB: Pipelines(GitHub(), client, credentials),
            ExecutorKind.GITLAB: Pipelines(GitLab(), client, credentials),
            ExecutorKind.REHEARSAL: Rehearsal(),
        }
    )
