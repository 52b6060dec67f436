"""How requests leave: aiohttp's connections, guarded, and with what the way to a server adds."""

import re
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from adapters.address import InvalidURL, url_of
from adapters.connector import Connector
from adapters.egress import ReachableAddresses, check_egress, check_resolved
from adapters.errors import BadRequest, Refused
from adapters.http_answer import Answer, Request
from adapters.http_client import basic_credentials
from adapters.wire import Wire

# Idle connections are dropped before common load balancers drop them (nginx 75 s, AWS ALB 60 s,
# Node 5 s is the outlier), so that a POST rarely meets a connection that is already closed.
KEEPALIVE_S: Final = 15.0

# What would begin another header, or would be left out on the way: half a character.
_UNSENDABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


class GuardedTransport:
    """Refuses hosts that are not allowed before any connection.

    `tls` None is what `usual` tells, at the first connection that is encrypted. `extra` are headers
    that a request may lack. Connections belong to the loop of the first request.
    """

    def __init__(
        self,
        tls: ssl.SSLContext | None,
        usual: Callable[[], ssl.SSLContext],
        *,
        max_connections: int,
        allowed: frozenset[str] | None = None,
        reachable: ReachableAddresses | None = None,
        proxy: str = "",
        extra: tuple[tuple[str, str], ...] = (),
        keeps_cookies: bool = False,
    ) -> None:
        self._tls = tls
        self._usual = usual
        self._max_connections = max_connections
        self._allowed = allowed and frozenset(host.lower().rstrip(".") for host in allowed)
        self._reachable = reachable
        self._extra = tuple((name.lower(), value) for name, value in extra)
        self._keeps_cookies = keeps_cookies
        self._always: dict[str, Any] = {"allow_redirects": False, "auto_decompress": False}
        self._proxy_host = ""
        if proxy:
            via = _proxy(proxy)
            self._always |= via
            self._proxy_host = via["proxy"].raw_host or ""
        self._session: aiohttp.ClientSession | None = None
        # Where nothing stands between, and nothing is kept.
        self._wire: Wire | None = None

    async def open(self, request: Request) -> Answer:
        """See `Transport`. Raises Refused, and aiohttp's errors."""
        self._check((request.url.raw_host or "").lower().rstrip("."))
        for name, value in self._extra:
            request.headers.setdefault(name, value)
        _check_headers(request.headers)
        if self._session is None:
            self._session = self._new_session()
        if self._wire is not None and Wire.takes(request):
            return await self._wire.open(request)
        found = await self._session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            timeout=request.times,
            **self._always,
        )
        return Answer(request, found.status, found.headers, found.content, found)

    async def aclose(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()

    def _check(self, host: str) -> None:
        if self._allowed is not None and host not in self._allowed:
            raise Refused(f"egress to {host} is not allowed")
        check_egress(host)
        if self._proxy_host:
            check_egress(self._proxy_host)
        if self._reachable is not None:
            self._reachable.check(host)

    def _new_session(self) -> aiohttp.ClientSession:
        connector = Connector(
            self._usual,
            limit=self._max_connections,
            keepalive_timeout=KEEPALIVE_S,
            ssl=self._tls or True,
            resolver=_CheckedResolver(self._reachable),
            use_dns_cache=self._reachable is None,
        )
        jar = (
            # Of servers that have no name as well, and sent back as they were given.
            aiohttp.CookieJar(unsafe=True, quote_cookie=False)
            if self._keeps_cookies
            else aiohttp.DummyCookieJar()
        )
        if not (self._proxy_host or self._keeps_cookies):
            self._wire = Wire(connector)
        return aiohttp.ClientSession(connector=connector, cookie_jar=jar, trust_env=False)


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if _UNSENDABLE.search(value) or _UNSENDABLE.search(name):
            raise BadRequest("a header holds a character that cannot be sent")


class _CheckedResolver(AbstractResolver):
    """Resolves once per connection, which is then made to what was checked and nowhere else."""

    def __init__(self, reachable: ReachableAddresses | None) -> None:
        self._reachable = reachable
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        try:
            found = await self._system.resolve(host, port, family)
        except UnicodeError as error:  # too long a label, or an empty one
            raise InvalidURL("not a host's name") from error
        for each in found:  # one that is refused refuses all: a mixed answer is an attack
            check_resolved(host, each["host"])
            if self._reachable is not None:
                self._reachable.check(each["host"])
        return found

    async def close(self) -> None:
        await self._system.close()


def _proxy(address: str) -> Mapping[str, Any]:
    """Its address, and its credentials as aiohttp wants them: sent on as Proxy-Authorization."""
    url: URL = url_of(address)
    if url.raw_user is None and url.raw_password is None:
        return {"proxy": url}
    pair = basic_credentials(url.user or "", url.password or "")
    return {"proxy": url.with_user(None), "proxy_headers": {"Authorization": pair}}
