"""Signing in to the page at an identity provider: the way there and back, and who tries to bend it."""

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import JsonValue

from adapters.errors import BadAnswer
from adapters.oidc.sign_in import OidcSignIn, SignInClient
from adapters.oidc.tokens import Issuer, OidcTokens, TokenRefused
from bot.domain.callers import OPERATOR, Caller
from bot.web.api.callers import Denied
from bot.web.page import PageSessions, page_routes
from bot.web.page_sign_in import BACK_PATH, FAILED, START_PATH, SignInRoutes

KEY = ec.generate_private_key(ec.SECP256R1())
Browser = TestClient[web.Request, web.Application]


@dataclass
class Provider:
    """An identity provider: gives codes, and tokens for them to who shows the verifier and the secret."""

    url: str = ""
    issuer: str = ""
    authorization: str = ""
    answer: web.Response | None = None
    claims: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def code_for(self, address: str) -> str:
        """What a person who signs in at that address brings back."""
        code = secrets.token_hex(8)
        self.codes[code] = dict(parse_qsl(urlsplit(address).query))
        return code

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._metadata)
        app.router.add_get("/keys", self._keys)
        app.router.add_post("/token", self._token)
        return app

    async def _metadata(self, _request: web.Request) -> web.Response:
        told = {
            "issuer": self.issuer or self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": self.authorization or f"{self.url}/authorize?tenant=shop",
            "token_endpoint": f"{self.url}/token",
        }
        return web.json_response(told)

    async def _keys(self, _request: web.Request) -> web.Response:
        key = jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
        return web.json_response({"keys": [{**key, "kid": "one", "alg": "ES256"}]})

    async def _token(self, request: web.Request) -> web.Response:
        if self.answer is not None:
            return self.answer
        form = await request.post()
        asked = self.codes.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        shown = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        basic = "Basic " + base64.b64encode(b"kortex:s3cret").decode()
        fits = (
            asked is not None
            and asked["code_challenge"] == shown
            and asked["redirect_uri"] == form["redirect_uri"]
            and request.headers.get("Authorization") == basic
        )
        if asked is None or not fits:
            return web.json_response({"error": "invalid_grant"}, status=400)
        body = {
            "iss": self.url, "aud": "kortex", "sub": "ann", "exp": int(time.time()) + 300,
            "nonce": asked["nonce"], **self.claims,
        }  # fmt: skip
        token = jwt.encode(body, KEY, "ES256", headers={"kid": "one"})
        return web.json_response({"id_token": token, "access_token": "x"})


@dataclass
class Page:
    """The page of a bot, in a browser, and what its authenticator answers to tokens."""

    browser: Browser
    provider: Provider
    refuses: bool = False

    async def shown(self, token: str) -> Caller:
        if self.refuses or not token:
            raise Denied(401, "unauthorized", "no")
        return OPERATOR

    async def start(self) -> str:
        """Where the browser is sent."""
        async with self.browser.get(START_PATH, allow_redirects=False) as answer:
            assert answer.status == 302
            return answer.headers["Location"]

    async def back(self, **query: str) -> tuple[int, str, str]:
        """Status, where it is sent on, and the cookie that it got, if any."""
        path = BACK_PATH
        async with self.browser.get(path, params=query, allow_redirects=False) as answer:
            cookie = answer.cookies.get("kortex")
            return answer.status, answer.headers.get("Location", ""), cookie.value if cookie else ""


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    provider = Provider()
    async with TestServer(provider.app()) as server:
        provider.url = f"http://127.0.0.1:{server.port}"
        tokens = OidcTokens(Issuer(provider.url, "kortex", ("ES256",)), time.monotonic)
        sign_in = OidcSignIn(SignInClient(provider.url, "kortex", "s3cret"))
        sessions = PageSessions(frozenset({"kortex.example.com"}), 3600)
        app = web.Application()
        browser = TestClient(TestServer(app))
        made = Page(browser, provider)

        async def claims_of(token: str) -> Mapping[str, JsonValue] | None:
            try:
                return await tokens.claims(token)
            except TokenRefused:
                return None

        app.router.add_routes(page_routes(sessions, made.shown, at_provider=True))
        app.router.add_routes(SignInRoutes(sign_in, claims_of, made.shown, sessions).routes())
        async with browser:
            yield made


def state_of(address: str) -> str:
    return dict(parse_qsl(urlsplit(address).query))["state"]


async def test_a_person_who_returns_with_a_code_is_signed_in(page: Page) -> None:
    where = await page.start()
    query = dict(parse_qsl(urlsplit(where).query))
    assert query["tenant"] == "shop"
    assert query["code_challenge_method"] == "S256"

    status, _, cookie = await page.back(code=page.provider.code_for(where), state=state_of(where))

    assert status == 200
    assert jwt.decode(cookie, options={"verify_signature": False})["sub"] == "ann"


async def test_a_sign_in_state_works_once(page: Page) -> None:
    where = await page.start()
    code = page.provider.code_for(where)
    await page.back(code=code, state=state_of(where))

    assert await page.back(code=code, state=state_of(where)) == (302, FAILED, "")


@pytest.mark.parametrize("state", ["", "another", "\ud7ff"])
async def test_a_state_of_another_browser_is_refused(page: Page, state: str) -> None:
    where = await page.start()

    told = await page.back(code=page.provider.code_for(where), state=state)

    assert told == (302, FAILED, "")


async def test_a_code_from_another_persons_browser_is_refused(page: Page) -> None:
    theirs = await page.start()
    code = page.provider.code_for(theirs)
    page.browser.session.cookie_jar.clear()
    ours = await page.start()

    assert await page.back(code=code, state=state_of(ours)) == (302, FAILED, "")


@pytest.mark.parametrize(
    "claims",
    [{"nonce": "another"}, {"nonce": None}, {"aud": "other"}, {"exp": 1}, {"x": "y" * 4000}],
)
async def test_a_token_for_another_sign_in_is_refused(page: Page, claims: dict[str, Any]) -> None:
    page.provider.claims = claims
    where = await page.start()

    told = await page.back(code=page.provider.code_for(where), state=state_of(where))

    assert told == (302, FAILED, "")


async def test_a_person_unknown_to_the_api_is_not_signed_in(page: Page) -> None:
    page.refuses = True
    where = await page.start()

    told = await page.back(code=page.provider.code_for(where), state=state_of(where))

    assert told == (302, FAILED, "")


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(status=500, text="no"),
        web.Response(text="<html>"),
        web.json_response({}),
        web.json_response({"id_token": 5}),
        web.Response(body=b"[" * 100_000),
    ],
    ids=["an error", "a page", "nothing", "another type", "brackets"],
)
async def test_a_provider_without_a_token_signs_no_one_in(page: Page, answer: web.Response) -> None:
    page.provider.answer = answer
    where = await page.start()

    told = await page.back(code=page.provider.code_for(where), state=state_of(where))

    assert told == (302, FAILED, "")


@pytest.mark.parametrize("path", ["/", START_PATH, BACK_PATH, "/page/session"])
async def test_a_foreign_host_name_gets_nothing(page: Page, path: str) -> None:
    headers = {"Host": "kortex.attacker.example"}
    async with page.browser.get(path, headers=headers, allow_redirects=False) as answer:
        assert answer.status == 421


async def test_the_cookie_of_the_public_name_is_sent_over_tls_only(page: Page) -> None:
    host = {"Host": "kortex.example.com"}
    async with page.browser.get(START_PATH, headers=host, allow_redirects=False) as answer:
        query = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
        cookie = answer.headers["Set-Cookie"]

    assert query["redirect_uri"] == f"https://kortex.example.com{BACK_PATH}"
    assert {"HttpOnly", "Secure", "SameSite=Lax"} <= set(cookie.split("; "))


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://other.example"},
        {"authorization": "javascript:alert(1)"},
        {"authorization": "http://[::1"},
        {"authorization": "http:authorize"},
    ],
    ids=["another issuer", "no address", "half an address", "no host"],
)
async def test_metadata_that_redirects_elsewhere_is_not_followed(
    page: Page, change: dict[str, str]
) -> None:
    for name, value in change.items():
        setattr(page.provider, name, value)
    assert await page.start() == FAILED

    sign_in = OidcSignIn(SignInClient(page.provider.url, "kortex"))
    with pytest.raises(BadAnswer):
        await sign_in.address("http://127.0.0.1/", "s", "n", "v")
