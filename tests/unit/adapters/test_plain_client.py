"""Our client builds and sends what httpx's does: the same URLs, headers, bytes and refusals."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import httpx
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.http import http_client
from adapters.plain_client import PlainClient
from tests.fixtures_http import serving

TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
PARAMS = st.none() | st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=3), max_size=4)
PATHS = (
    st.sampled_from(
        ["/loki/api/v1/query_range", "", "/", "a?b=c", "//x", "../x", "https://other/p?q#f"]
    )
    | TEXT
)
BASES = ["", "http://loki:3100", "https://user:pa%40ss@[::1]:8443/a/b/", "http://höst/ü?x=1"]
HEADERS = st.none() | st.dictionaries(st.sampled_from(["X-Scope-OrgID", "accept"]), st.just("v"))


def built(build: Callable[[], httpx.Request]) -> object:
    try:
        made = build()
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError, ValueError) as error:
        return type(error)
    return made.method, str(made.url), made.url, made.headers.raw, made.extensions, made.content


@given(st.sampled_from(BASES), PATHS, PARAMS, HEADERS)
@example(BASES[1], "/query", {"query": "x" * 65_000}, None)
@example(BASES[1], "/query", {"query": "é" * 65_000}, None)
@example(BASES[1], "/query?a=b#c", {}, None)
@example(BASES[1], "/query?a=b#c", {"": []}, None)
def test_a_request_is_built_as_httpx_builds_it(
    base: str,
    path: str,
    params: Mapping[str, str | Sequence[str]] | None,
    headers: Mapping[str, str] | None,
) -> None:
    theirs, ours = httpx.AsyncClient(base_url=base), PlainClient(base_url=base)
    expected = built(lambda: theirs.build_request("GET", path, params=params, headers=headers))
    for _ in range(2):  # also from what it remembers
        found = built(lambda: ours.build_request("GET", path, params=params, headers=headers))
        assert found == expected


@pytest.mark.parametrize(
    "query",
    ['{a="b"} |= `x & y`', "+%2B %", "ümläut 日本", "a=b&c=d#e?f", "", "\x00\x1f\x7f"],
)
async def test_the_same_bytes_are_sent(query: str) -> None:
    seen: list[tuple[str, list[tuple[bytes, bytes]]]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.raw_path, list(request.raw_headers)))
        return web.Response(text="")

    async with (
        serving(handler) as url,
        http_client(base_url=url, keeps_cookies=True) as theirs,
        http_client(base_url=url) as ours,
    ):
        for client in (theirs, ours):
            request = client.build_request("GET", "/a b", params={"query": query, "of": ["1", "2"]})
            response = await client.send(request, stream=True)
            await response.aclose()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("stream", [False, True])
async def test_no_cookie_is_stored_or_sent(*, stream: bool) -> None:
    sent: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        sent.append(request.headers.get("cookie", "none"))
        response = web.Response(text="x")
        response.set_cookie("session", "1")
        response.headers.add("set-cookie", "other=2; Domain=127.0.0.1; Path=/")
        return response

    async with serving(handler) as url, http_client(base_url=url) as client:
        for _ in range(2):
            response = await client.send(client.build_request("GET", "/"), stream=stream)
            await response.aclose()
        assert dict(client.cookies) == {}
    assert sent == ["none", "none"]


async def test_a_client_that_keeps_cookies_sends_them_back() -> None:
    async def handler(request: web.Request) -> web.Response:
        response = web.Response(text=request.headers.get("cookie", "none"))
        response.set_cookie("session", "1")
        return response

    async with serving(handler) as url, http_client(base_url=url, keeps_cookies=True) as client:
        assert [(await client.get("/")).text for _ in range(2)] == ["none", "session=1"]


async def test_a_streamed_redirect_is_an_answer() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"location": "http://elsewhere.invalid/"})

    async with serving(handler) as url, http_client(base_url=url) as client:
        response = await client.send(client.build_request("GET", "/"), stream=True)
        await response.aclose()
    assert response.status_code == 302


async def test_a_request_of_ones_own_making_has_the_clients_times() -> None:
    seen: list[object] = []
    transport = httpx.MockTransport(
        lambda request: seen.append(request.extensions.get("timeout")) or httpx.Response(200)  # type: ignore[func-returns-value]
    )
    client = PlainClient(transport=transport, timeout=httpx.Timeout(7.0))
    await client.send(httpx.Request("GET", "http://loki/"), stream=True)
    assert seen == [{"connect": 7.0, "read": 7.0, "write": 7.0, "pool": 7.0}]


async def test_what_leads_requests_elsewhere_runs_before_they_are_sent() -> None:
    async def elsewhere(request: httpx.Request) -> None:
        request.url = request.url.copy_with(host="other")

    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=request.url.host))
    client = PlainClient(base_url="http://loki", transport=transport)
    client.event_hooks = {"request": [elsewhere]}
    response = await client.send(client.build_request("GET", "/"), stream=True)
    assert await response.aread() == b"other"
    assert response.request.url.host == "other"


async def test_a_closed_client_sends_nothing() -> None:
    client = http_client(base_url="http://127.0.0.1:1")
    request = client.build_request("GET", "/")
    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.send(request, stream=True)


@pytest.mark.parametrize("way", ["auth", "user"])
async def test_an_identity_is_still_signed_in(way: str) -> None:
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, text=request.headers.get("authorization", "none"))
    )
    client = PlainClient(transport=transport)
    address = "http://loki/" if way == "auth" else "http://me:secret@loki/"
    request = client.build_request("GET", address)
    with suppress(RuntimeError):
        given_ = {"auth": httpx.BasicAuth("me", "secret")} if way == "auth" else {}
        response = await client.send(request, stream=True, **given_)
        assert (await response.aread()).startswith(b"Basic ")
