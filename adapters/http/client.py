"""The one place that opens HTTP clients, and the calls that most adapters make with one.

A client has explicit limits, takes nothing from the environment, follows no redirects and keeps no
cookies. The caller states the request; `adapters.http.errors` maps its errors.
"""

import ssl
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final
from urllib.parse import urlsplit

import httpx

from adapters.http.body import ENCODINGS, read_capped
from adapters.http.egress import ReachableAddresses, plain_host
from adapters.http.errors import mapped_errors
from adapters.http.transport import GuardedTransport, Limits, Route

DIRECT: Final = Route()
REACH_S: Final = 5.0


def http_client(
    *,
    base_url: str = "",
    headers: Mapping[str, str] | None = None,
    connect_s: float = 5.0,
    read_s: float = 60.0,
    streams: bool = False,
    max_connections: int = 100,
    allowed_hosts: frozenset[str] | None = None,
    tls: ssl.SSLContext | None = None,
    reachable: ReachableAddresses | None = None,
    proxy: str = "",
    routes: Mapping[str, Route] | None = None,
    keeps_cookies: bool = False,
) -> httpx.AsyncClient:
    """A new client; the caller owns it and calls `aclose`.

    `connect_s` covers the wait for a free connection and making one. The whole answer has to arrive
    within `connect_s` and `read_s` together; with `streams`, `read_s` is the longest silence
    instead. A request's own `timeout` replaces both.

    `allowed_hosts` and `reachable` (checked for each address of a name) raise `Refused` before a
    connection is opened, as the confinement of `adapters.http.egress` does for every client. `tls`
    replaces the usual trust. `proxy` (`http://user:password@proxy:3128`) takes every request, as a
    tunnel to an https server; it resolves the names, so `reachable` beside it raises ValueError.

    `routes` are for hosts with a trust, a proxy and headers of their own; the headers of a request
    come first. `keeps_cookies` is for servers whose balancer needs them.
    """
    if proxy and reachable is not None:
        raise ValueError("behind a proxy the addresses of a name are not known")
    allowed = None if allowed_hosts is None else frozenset(map(_as_asked, allowed_hosts))
    limits = Limits(max_connections, allowed, reachable, streams)
    policy = None if keeps_cookies else DefaultCookiePolicy(allowed_domains=[])
    return httpx.AsyncClient(
        transport=GuardedTransport(Route(tls=tls, proxy=proxy), limits),
        mounts={
            f"all://{_in_url(host)}": GuardedTransport(route, limits)
            for host, route in (routes or {}).items()
        },
        base_url=base_url,
        headers={"user-agent": "kortex", "accept-encoding": ENCODINGS, **(headers or {})},
        timeout=httpx.Timeout(read_s, connect=connect_s, pool=connect_s),
        cookies=CookieJar(policy),
        trust_env=False,
    )


def _as_asked(host: str) -> str:
    """A host as httpx writes it: lower case, IDNA. A text that is no host stays, and matches none."""
    try:
        return plain_host(httpx.URL(f"http://{_in_url(host)}/").raw_host.decode("ascii"))
    except httpx.InvalidURL:
        return host


def _in_url(host: str) -> str:
    return f"[{host.strip('[]')}]" if ":" in host else host


async def answer_to(
    client: httpx.AsyncClient, request: httpx.Request, max_bytes: int
) -> tuple[httpx.Response, bytes]:
    """The answer with any status, and its whole body. Raises as `send` and `read_capped` do."""
    response = await client.send(request, stream=True)
    try:
        return response, await read_capped(response, max_bytes)
    finally:
        await response.aclose()


async def reach(client: httpx.AsyncClient, url: str, what: str) -> None:
    """`OPTIONS /` of its host, without a credential; any answer will do. Raises AdapterError.

    `what` names the other side in errors.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    with mapped_errors(what):
        request = httpx.Request(
            "OPTIONS",
            f"{parts.scheme}://{host}/",
            extensions={"timeout": client.timeout.as_dict()},
        )
        response = await client.send(request, stream=True)
        await response.aclose()


async def reach_alone(url: str, what: str) -> None:
    """The same over a connection of its own, which reaches that host only. Raises AdapterError."""
    host = frozenset({urlsplit(url).hostname or ""})
    async with http_client(connect_s=REACH_S, read_s=REACH_S, allowed_hosts=host) as client:
        await reach(client, url, what)
