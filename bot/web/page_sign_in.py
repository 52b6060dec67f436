"""Signing in to the page at an identity provider: there and back, with a code that only we can use.

What we have to know again when the browser comes back is in a cookie of its own that lives ten minutes:
no replica has to remember anything.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

import structlog
from aiohttp import web
from pydantic import JsonValue

from adapters.errors import AdapterError
from bot.web.api.callers import Denied
from bot.web.page import LOOPBACK, MOST_TOKEN_CHARS, PageSessions, Shown

_log = structlog.stdlib.get_logger(__name__)

START_PATH: Final = "/page/oidc/start"
BACK_PATH: Final = "/page/oidc/back"
_COOKIE: Final = "kortex-sign-in"
_LASTS_S: Final = 600
_BYTES: Final = 32
FAILED: Final = "/#sign-in-failed"
# The browser comes from the provider's page, and would not send a strict cookie with a redirect of
# ours: it starts again from a page of this host.
_HOME: Final = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><title>Kortex</title>'
    b'<meta http-equiv="refresh" content="0; url=/"><a href="/">Signed in. Go on.</a></html>'
)


class SignIn(Protocol):
    """An identity provider. Both raise AdapterError."""

    async def address(self, redirect_uri: str, state: str, nonce: str, verifier: str) -> str: ...

    async def id_token(self, code: str, redirect_uri: str, verifier: str) -> str:
        """What it gives for the code the browser brings back."""
        ...


ClaimsOf = Callable[[str], Awaitable[Mapping[str, JsonValue] | None]]


class SignInRoutes:
    """The two routes. A token counts when it is for this sign-in, and as `shown` judges it."""

    def __init__(
        self, sign_in: SignIn, claims_of: ClaimsOf, shown: Shown, sessions: PageSessions
    ) -> None:
        self._sign_in = sign_in
        self._claims_of = claims_of
        self._shown = shown
        self._sessions = sessions

    def routes(self) -> Sequence[web.RouteDef]:
        """Under `/page/oidc/`."""
        return [web.get(START_PATH, self._start), web.get(BACK_PATH, self._back)]

    async def _start(self, request: web.Request) -> web.StreamResponse:
        if not self._sessions.is_ours(request):
            raise web.HTTPMisdirectedRequest
        state, nonce, verifier = (secrets.token_urlsafe(_BYTES) for _ in range(3))
        try:
            where = await self._sign_in.address(_redirect_uri(request), state, nonce, verifier)
        except AdapterError as error:
            _log.warning("page.sign_in.unavailable", why=error.message)
            return _to(FAILED)
        response = _to(where)
        response.set_cookie(
            _COOKIE,
            f"{state}.{nonce}.{verifier}",
            max_age=_LASTS_S,
            path=BACK_PATH,
            httponly=True,
            secure=request.url.host not in LOOPBACK,
            samesite="Lax",  # it is sent when the provider's page sends the browser back
        )
        return response

    async def _back(self, request: web.Request) -> web.StreamResponse:
        if not self._sessions.is_ours(request):
            raise web.HTTPMisdirectedRequest
        token = await self._token(request)
        if token is None:
            response: web.StreamResponse = _to(FAILED)
        else:
            headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
            response = web.Response(body=_HOME, content_type="text/html", headers=headers)
            self._sessions.keep(request, response, token)
        response.del_cookie(_COOKIE, path=BACK_PATH)
        return response

    async def _token(self, request: web.Request) -> str | None:
        """The provider's token, or None. The log has the reason; the browser does not see it."""
        state, _, rest = request.cookies.get(_COOKIE, "").partition(".")
        nonce, _, verifier = rest.partition(".")
        given, code = request.query.get("state", ""), request.query.get("code", "")
        if not (state and verifier and code and hmac.compare_digest(_bytes(given), _bytes(state))):
            _log.info("page.sign_in.refused", why=_word(request.query.get("error", "state")))
            return None
        try:
            token = await self._sign_in.id_token(code, _redirect_uri(request), verifier)
            claims = await self._claims_of(token) or {}
            if claims.get("nonce") != nonce or len(token) > MOST_TOKEN_CHARS:
                _log.info("page.sign_in.refused", why="nonce" if claims else "token")
                return None
            await self._shown(token)
        except AdapterError as error:
            _log.warning("page.sign_in.unavailable", why=error.message)
            return None
        except Denied as denied:
            _log.info("page.sign_in.refused", why=denied.code)
            return None
        return token


def _redirect_uri(request: web.Request) -> str:
    """Behind a proxy that ends TLS the request itself does not know of it; the page's names do."""
    scheme = "http" if request.url.host in LOOPBACK else "https"
    return f"{scheme}://{request.host}{BACK_PATH}"


def _to(where: str) -> web.Response:
    return web.Response(status=302, headers={"Location": where, "Cache-Control": "no-store"})


def _word(text: str) -> str:
    return "".join(c for c in text[:40] if c.isalnum() or c == "_")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
