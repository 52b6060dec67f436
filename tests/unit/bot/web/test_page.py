"""The operator's page: its host names, and the requests that it accepts."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.domain.callers import OPERATOR, Caller
from bot.web.api.callers import Denied
from bot.web.page import MOST_TOKEN_CHARS, SESSION_PATH, PageSessions, page_routes

Client = TestClient[web.Request, web.Application]
TOKEN, NAME = "a-token", "kortex.example"
JSON = {"Content-Type": "application/json"}


async def _shown(token: str) -> Caller:
    if token != TOKEN:
        raise Denied(401, "unauthorized", "no")
    return OPERATOR


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    app = web.Application()
    app.add_routes(page_routes(PageSessions(frozenset({NAME}), 60), _shown))
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/page/app.js", SESSION_PATH])
async def test_a_foreign_host_name_gets_nothing(client: Client, path: str) -> None:
    answer = await client.get(path, headers={"Host": "evil.example"})
    assert answer.status == 421
    assert set(await answer.json()) == {"error"}


@pytest.mark.parametrize(
    ("host", "origin", "site", "status"),
    [
        (NAME, f"https://{NAME}", "same-origin", 200),
        (NAME.upper(), f"https://{NAME.upper()}", "same-origin", 200),
        ("localhost:1", "http://localhost:1", None, 200),
        (NAME, f"https://{NAME}", "cross-site", 403),
        (NAME, "https://evil.example", None, 403),
        (NAME, "https://evil.example", "same-origin", 403),
        ("localhost:1", "http://localhost:2", None, 403),
        (NAME, f"https://{NAME}@evil.example", None, 403),
        (NAME, "https://[", None, 403),
        (NAME, "null", None, 403),
        (NAME, None, None, 403),
        (NAME, None, "none", 403),
        ("evil.example", "https://evil.example", "same-origin", 421),
    ],
)
async def test_only_our_own_page_signs_in_or_out(
    client: Client, host: str, origin: str | None, site: str | None, status: int
) -> None:
    told = {"Host": host, "Origin": origin, "Sec-Fetch-Site": site}
    headers = JSON | {name: value for name, value in told.items() if value is not None}
    for method in ("POST", "DELETE"):
        answer = await client.request(method, SESSION_PATH, json={"token": TOKEN}, headers=headers)
        assert answer.status == status
        assert ("Set-Cookie" in answer.headers) == (status == 200)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"token":"another"}', 401),
        (b'{"token":"a;b"}', 400),
        (b'{"token":"a\\r\\nSet-Cookie: x=y"}', 400),
        (b'{"token":"\\ud800"}', 400),
        (b'{"token":1e400}', 400),
        (b'{"token":"a-token","more":1}', 400),
        (b'{"token":"' + b"a" * (MOST_TOKEN_CHARS + 1) + b'"}', 400),
        (b"[" * 1_500, 400),
        (b"a" * 50_000, 413),
        (b"", 400),
    ],
)
async def test_an_invalid_token_sets_no_cookie(client: Client, body: bytes, status: int) -> None:
    headers = JSON | {"Host": NAME, "Origin": f"https://{NAME}"}
    answer = await client.post(SESSION_PATH, data=body, headers=headers)
    assert (answer.status, "Set-Cookie" in answer.headers) == (status, False)
    assert TOKEN not in await answer.text()


async def test_the_cookie_is_hidden_from_scripts_other_sites_and_plain_http(
    client: Client,
) -> None:
    headers = JSON | {"Host": NAME, "Origin": f"https://{NAME}"}
    answer = await client.post(SESSION_PATH, json={"token": TOKEN}, headers=headers)
    kept = answer.headers["Set-Cookie"]
    assert kept.startswith(f"__Host-kortex={TOKEN}; ")
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(kept.split("; "))


async def test_the_page_runs_nothing_inline_and_nothing_from_other_hosts(client: Client) -> None:
    answer = await client.get("/", headers={"Host": NAME})
    text = await answer.text()
    policy = answer.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert " style=" not in text
    assert " onclick=" not in text
    assert "://" not in text
