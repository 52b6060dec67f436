"""The operator's page: its files, and a sign-in with a token that the page's scripts never see.

A user enters an API token once. It stays in a cookie that scripts cannot read and that goes to this
host alone, and is checked at each request like a header. A request that changes state is accepted
from our own page only.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.domain.callers import Caller
from bot.page.files import PageFiles
from bot.web.api.callers import Denied
from bot.web.api.operations import refused
from bot.web.ingest import IngestRefused, read_body

SESSION_PATH: Final = "/page/session"
MOST_TOKEN_CHARS: Final = 3_800  # a cookie holds 4,096 bytes with its name (RFC 6265 §6.1)
MAX_BODY_BYTES: Final = 16_384
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
# Only over https, only for this host, only for the whole of it: a browser refuses it otherwise
# (https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis, "__Host-").
_SECURE: Final = "__Host-kortex"
_PLAIN: Final = "kortex"
_SAFE: Final = frozenset({"GET", "HEAD"})
_MOST_PORT: Final = 65_535
_HOST: Final = re.compile(r"(?:\[([0-9a-f:]{2,39})\]|([a-z0-9._-]{1,253}))(?::([0-9]{1,5}))?")

Shown = Callable[[str], Awaitable[Caller]]  # the token's caller; raises Denied


class _SignIn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    token: str = Field(
        min_length=1, max_length=MOST_TOKEN_CHARS, pattern=r"^[\x21-\x3a\x3c-\x7e]+$"
    )


@dataclass(frozen=True, slots=True)
class PageSessions:
    """Cookies of people who signed in. `hosts` are the names the page has beside this machine's own."""

    hosts: frozenset[str]
    lasts_s: int

    def token(self, request: web.Request) -> str:
        """Of the cookie, where the request may carry it; else ""."""
        is_asked_by_us = _is_read_by_us if request.method in _SAFE else _is_from_page
        if not self.is_ours(request) or not is_asked_by_us(request):
            return ""
        return request.cookies.get(self._name(request), "")

    def is_ours(self, request: web.Request) -> bool:
        """Another name for this host may come from another site's page (DNS rebinding)."""
        return _host(request) in LOOPBACK | self.hosts

    def keep(self, request: web.Request, response: web.StreamResponse, token: str) -> None:
        response.set_cookie(
            self._name(request),
            token,
            max_age=self.lasts_s,
            path="/",
            httponly=True,
            secure=self._is_secure(request),
            samesite="Strict",
        )

    def forget(self, request: web.Request, response: web.StreamResponse) -> None:
        """Take the cookie back."""
        secure = self._is_secure(request)
        response.del_cookie(
            self._name(request), path="/", httponly=True, secure=secure, samesite="Strict"
        )

    def _is_secure(self, request: web.Request) -> bool:
        return _host(request) not in LOOPBACK

    def _name(self, request: web.Request) -> str:
        return _SECURE if self._is_secure(request) else _PLAIN


def _host(request: web.Request) -> str:
    """Without its port; "" without a host or for an invalid one.

    Read from the header alone: without it aiohttp looks this machine's name up, which may block,
    and raises for some invalid hosts.
    """
    found = _HOST.fullmatch(request.headers.get("Host", "").lower())
    return (found[1] or found[2]) if found and int(found[3] or 0) <= _MOST_PORT else ""


def _is_read_by_us(request: web.Request) -> bool:
    """Another page of this machine, at another port, is sent the cookie for as well."""
    return request.headers.get("Sec-Fetch-Site", "none") in {"same-origin", "none"}


def _is_from_page(request: web.Request) -> bool:
    """Browsers name the page that sends, and a page cannot forge that."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    try:
        origin = urlsplit(request.headers.get("Origin", ""))
    except ValueError:
        return False
    return site == "same-origin" and origin.netloc == request.headers.get("Host")


def page_routes(
    sessions: PageSessions,
    shown: Shown,
    *,
    at_provider: bool = False,
    link_hosts: Sequence[str] = (),
) -> Sequence[web.RouteDef]:
    """`/`, `/page/...`, and signing in and out. Names that are not ours get nothing.

    `at_provider`: people may also sign in at an identity provider. `link_hosts` are the hosts that
    an answer may link to; every other address is shown as text.
    """
    page = PageFiles("operator")

    async def ways(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"at_provider": at_provider, "link_hosts": list(link_hosts)})

    async def sign_in(request: web.Request) -> web.StreamResponse:
        try:
            token = await _token(request)
            await shown(token)
        except Denied as denied:
            return refused(denied)
        response = web.json_response({}, headers={"Cache-Control": "no-store"})
        sessions.keep(request, response, token)
        return response

    async def sign_out(request: web.Request) -> web.StreamResponse:
        response = web.json_response({}, headers={"Cache-Control": "no-store"})
        sessions.forget(request, response)
        return response

    guarded = _guarded(sessions)
    return [
        web.get("/", guarded(page.serve)),
        web.get(SESSION_PATH, guarded(ways)),
        web.get("/page/{name}", guarded(page.serve)),
        web.post(SESSION_PATH, guarded(sign_in)),
        web.delete(SESSION_PATH, guarded(sign_out)),
    ]


def _guarded(sessions: PageSessions) -> Callable[[Handler], Handler]:
    def guard(handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not sessions.is_ours(request):
                why = "The page has another name: see [page] hosts."
                return refused(Denied(421, "unknown_host", why))
            if request.method not in _SAFE and not _is_from_page(request):
                return refused(Denied(403, "foreign_page", "This came from another site's page."))
            return await handler(request)

        return handle

    return guard


async def _token(request: web.Request) -> str:
    try:
        body = await read_body(request, MAX_BODY_BYTES)
        return _SignIn.model_validate_json(body).token
    except IngestRefused as error:
        raise Denied(error.status, error.code, str(error)) from error
    except ValidationError as error:
        raise Denied(400, "invalid", "Send a token, as `kortex token create` prints it.") from error
