"""Our client: httpx is asked what it would send; loopback servers what they get, and how it ends."""

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import aiohttp
import httpx
import pytest
from aiohttp import web
from hypothesis import assume, example, given
from hypothesis import strategies as st
from yarl import URL

from adapters.address import InvalidURL, merged, url_of
from adapters.errors import Unreachable
from adapters.http import Way, http_client, read_capped
from adapters.http_answer import DecodingError, Headers, Request
from adapters.http_client import HttpClient, times_of
from tests.fakes.http_answers import Given, Handled, answering, body_of
from tests.fixtures_http import serving

TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
PARAMS = st.none() | st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=3), max_size=4)
PATHS = st.sampled_from(
    ["/loki/api/v1/query_range", "", "/", "a?b=c", "../x", "https://other/p?q#f"]
) | TEXT.map(lambda text: "/" + text.lstrip("/"))
BASES = ["http://loki:3100", "https://[::1]:8443/a/b/", "http://höst/ü"]
HEADERS = st.none() | st.dictionaries(st.sampled_from(["X-Scope-OrgID", "accept"]), st.just("v"))
BODIES: st.SearchStrategy[dict[str, object]] = st.sampled_from([
    {}, {"content": b"x"}, {"content": b""}, {"json": {"a": ["ü", 1, None]}}, {"json": None},
    {"data": {"q": "a b&c", "of": ["1", "2"]}}, {"data": {}},
    {"content": b"{}", "headers": {"Content-Type": "application/json"}},
])  # fmt: skip


def built(build: Callable[[], httpx.Request | Request]) -> object:
    try:
        made = build()
    except (httpx.InvalidURL, InvalidURL, UnicodeError):
        return InvalidURL
    body = made.content if isinstance(made, httpx.Request) else body_of(made)
    sent = URL(str(made.url))  # aiohttp reads a text so
    headers = {name: value for name, value in made.headers.items() if name != "host"}
    return made.method, sent.host, sent.port, sent.raw_path_qs, headers, body


@given(st.sampled_from(["GET", "POST"]), st.sampled_from(BASES), PATHS, PARAMS, HEADERS, BODIES)
@example("GET", BASES[0], "/query", {"query": "x" * 65_000}, None, {})
@example("GET", BASES[0], "/query", {"query": "é" * 65_000}, None, {})
@example("GET", BASES[0], "/query?a=b#c", {}, None, {})
@example("GET", BASES[0], "/query?a=b#c", {"": []}, None, {})
@example("GET", BASES[0], "x" * 70_000, None, None, {})
def test_a_request_is_what_httpx_would_send(
    method: str,
    base: str,
    path: str,
    params: Mapping[str, str | Sequence[str]] | None,
    headers: Mapping[str, str] | None,
    body: Mapping[str, object],
) -> None:
    steps = path.partition("?")[0].partition("#")[0].rpartition("/")[2]
    assume(steps not in {".", ".."})  # RFC 3986 leaves a slash there, httpx none
    asked = {"params": params, "headers": headers, **body}
    theirs = httpx.AsyncClient(base_url=base, headers={"user-agent": "kortex"})
    ours = HttpClient(Handled(lambda _: Given()), base_url=base)
    expected = built(lambda: theirs.build_request(method, path, **asked))  # type: ignore[arg-type]
    for _ in range(2):  # also from what it remembers
        assert built(lambda: ours.build_request(method, path, **asked)) == expected  # type: ignore[arg-type]


@given(PATHS, st.dictionaries(TEXT, TEXT, max_size=3))
def test_what_is_merged_into_an_address_is_what_httpx_merges(
    path: str, params: Mapping[str, str]
) -> None:
    def addressed(made: httpx.URL) -> httpx.Request:
        return httpx.Request("GET", made)

    text = f"http://control/products/?{path}"
    client = HttpClient(Handled(lambda _: Given()))
    theirs = built(lambda: addressed(httpx.URL(text).copy_merge_params(params)))
    ours = built(lambda: client.build_request("GET", merged(url_of(text), params)))
    line = 3
    assert isinstance(ours, tuple) == isinstance(theirs, tuple)
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        assert ours[line] == theirs[line]


@pytest.mark.parametrize(
    "query",
    ['{a="b"} |= `x & y`', "+%2B %", "ümläut 日本", "a=b&c=d#e?f", "", "\x00\x1f\x7f"],
)
async def test_a_server_reads_what_was_asked(query: str) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response([request.path, request.query.getall("query")])

    async with serving(handler) as url, http_client(base_url=url) as client:
        answer = await client.get("/a b", params={"query": query})
    assert answer.json() == ["/a b", [query]]


async def test_the_head_of_a_request_is_ours_to_the_last_line() -> None:
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, http_client(headers={"X-Key": "k"}) as client:
        await client.get(f"http://127.0.0.1:{port}/a?b", headers={"Accept": "text/plain"})
        await client.post(f"http://127.0.0.1:{port}/", json={})
    get, post = (head.decode().lower().split("\r\n") for head in heads)
    usual = {f"host: 127.0.0.1:{port}", "accept-encoding: gzip, deflate", "connection: keep-alive",
             "user-agent: kortex", "x-key: k", ""}  # fmt: skip
    assert (get[0], set(get[1:])) == ("get /a?b http/1.1", usual | {"accept: text/plain"})
    length, kind = "content-length: 2", "content-type: application/json"
    assert (post[0], set(post[1:])) == ("post / http/1.1", usual | {"accept: */*", length, kind})


async def test_no_cookie_is_stored_or_sent() -> None:
    sent: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        sent.append(request.headers.get("cookie", "none"))
        response = web.Response(text="x")
        response.set_cookie("session", "1")
        response.headers.add("set-cookie", "other=2; Domain=127.0.0.1; Path=/")
        return response

    async with serving(handler) as url, http_client(base_url=url) as client:
        for _ in range(2):
            await client.get("/")
    assert sent == ["none", "none"]


async def test_a_client_that_keeps_cookies_sends_them_back() -> None:
    async def handler(request: web.Request) -> web.Response:
        response = web.Response(text=request.headers.get("cookie", "none"))
        response.headers.add("set-cookie", "session=a/1+b==; Path=/")
        return response

    async with serving(handler) as url, http_client(base_url=url, keeps_cookies=True) as client:
        assert [(await client.get("/")).text for _ in range(2)] == ["none", "session=a/1+b=="]


async def test_a_redirect_is_an_answer() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"location": "http://elsewhere.invalid/"})

    async with serving(handler) as url, http_client(base_url=url) as client:
        assert (await client.get("/")).status_code == 302


async def test_a_request_has_the_clients_times_or_its_own() -> None:
    client = HttpClient(Handled(lambda _: Given()), times=times_of(5.0, 60.0))
    usual = client.build_request("GET", "http://loki/").times
    own = client.build_request("GET", "http://loki/", timeout=7.0).times
    assert (usual.connect, usual.sock_connect, usual.sock_read, usual.total) == (5, 5, 60, None)
    assert (own.connect, own.sock_connect, own.sock_read, own.total) == (7, 7, 7, None)


async def test_what_leads_requests_elsewhere_runs_before_they_are_sent() -> None:
    async def elsewhere(request: Request) -> None:
        request.url = request.url.with_host("other")

    client = answering(lambda request: Given(content=str(request.url).encode()), "http://loki")
    client.before = elsewhere
    assert (await client.get("/x?y=1")).text == "http://other/x?y=1"


async def test_what_belongs_to_every_request_stands_in_its_query() -> None:
    client = answering(lambda request: Given(content=request.url.raw_path_qs.encode()))
    client.params = {"of[]": "{a}"}
    assert (await client.get("/x")).text == "/x?of%5B%5D=%7Ba%7D"
    assert (await client.get("/x", params={"b": "1"})).text == "/x?of%5B%5D=%7Ba%7D&b=1"


async def test_a_closed_client_sends_nothing() -> None:
    client = http_client(base_url="http://127.0.0.1:1")
    request = client.build_request("GET", "/")
    await client.aclose()
    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.send(request)


def test_a_name_in_an_address_is_signed_in_and_not_sent() -> None:
    client = HttpClient(Handled(lambda _: Given()))
    request = client.build_request("GET", "http://me:s%C3%A9cret@loki/")
    assert request.headers["authorization"] == "Basic bWU6c8OpY3JldA=="
    assert str(request.url) == "http://loki/"


@pytest.mark.parametrize("text", ["http://a\nb/", "http://[::1/", "http://a:b/", "x" * 70_000])
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidURL):
        url_of(text)


async def test_a_large_body_goes_out_in_parts_with_its_length() -> None:
    async def handler(request: web.Request) -> web.Response:
        body = await request.read()
        kept = {name: request.headers.get(name) for name in ("content-length", "transfer-encoding")}
        return web.json_response([len(body), kept])

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1000

    async with serving(handler) as url, http_client(base_url=url) as client:
        sized = {"content-length": "3000"}
        known = (await client.post("/", content=parts(), headers=sized)).json()
        unknown = (await client.post("/", content=parts())).json()
    assert known == [3000, {"content-length": "3000", "transfer-encoding": None}]
    assert unknown == [3000, {"content-length": None, "transfer-encoding": "chunked"}]


async def test_a_host_is_reached_by_its_own_way_and_others_are_not() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("x-way", "none"))

    way = Way(headers=(("X-Way", "own"),))
    async with serving(handler) as url, http_client(ways={"LocalHost": way}) as client:
        there = url.replace("127.0.0.1", "localhost")
        told = [(await client.get(each)).text for each in (url, there)]
        told.append((await client.get(there, headers={"x-way": "mine"})).text)
    assert told == ["none", "own", "mine"]


async def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    accepted = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        await asyncio.wait({asyncio.ensure_future(reader.read(1))})
        writer.close()  # as the next request arrives

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, http_client(base_url=f"http://127.0.0.1:{port}") as client:
        assert [(await client.get("/")).text for _ in range(2)] == ["ok", "ok"]
    assert accepted == 2


async def test_connections_are_used_again_after_a_whole_body_and_closed_after_a_part() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        port = request.transport.get_extra_info("peername")[1]
        return web.Response(text=f"{port}".ljust(3_000_000))

    async with serving(handler) as url, http_client(base_url=url) as client:
        ports = [(await client.get("/")).text.strip() for _ in range(2)]
        async with client.stream("GET", "/") as answer:
            await answer.content.readany()
        ports.append((await client.get("/")).text.strip())
    assert ports[0] == ports[1] != ports[2]


async def test_who_waits_for_an_answer_or_its_body_leaves_at_once() -> None:
    left = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        try:
            if request.path == "/body":
                await response.prepare(request)
            await asyncio.sleep(60)
        finally:
            left.set()
        return response

    app = web.Application(handler_args={"handler_cancellation": True})
    app.router.add_get("/{tail:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with http_client(base_url=f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
        for path in ("/head", "/body"):
            left.clear()
            task = asyncio.ensure_future(client.get(path))
            await asyncio.sleep(0.05)
            before_s = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await left.wait()
            assert time.monotonic() - before_s < 0.1
    await runner.cleanup()


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("deflate, GZIP", lambda data: gzip.compress(zlib.compress(data))),
        ("identity", lambda data: data),
        ("unheard-of", lambda data: data),
    ],
)
async def test_what_is_compressed_is_read_in_pieces(
    encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    whole = bytes(range(256)) * 4000
    sent = compress(whole)
    parts = [sent[at : at + 999] for at in range(0, len(sent), 999)]

    async def arriving() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    head = {"content-encoding": encoding}
    client = answering(lambda _: Given(content=arriving(), headers=head))
    async with client.stream("GET", "/") as answer:
        pieces = [piece async for piece in answer.aiter_bytes()]
    assert b"".join(pieces) == whole
    assert max(map(len, pieces)) <= 64 * 1024


async def test_a_bomb_is_left_after_its_first_pieces() -> None:
    bomb = gzip.compress(bytes(200_000_000), compresslevel=1)
    client = answering(lambda _: Given(content=bomb, headers={"content-encoding": "gzip"}))
    async with client.stream("GET", "/") as answer:
        sizes = []
        async for piece in answer.aiter_bytes():
            sizes.append(len(piece))
            if len(sizes) == 3:
                break
    assert max(sizes) <= 64 * 1024


async def test_what_is_not_compressed_as_it_says_raises_our_error() -> None:
    client = answering(lambda _: Given(content=b"plain", headers={"content-encoding": "gzip"}))
    async with client.stream("GET", "/") as answer:
        with pytest.raises(DecodingError):
            await answer.aread()


async def test_headers_are_joined_whatever_their_case_and_bytes() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nLink: <a>\r\nlink: <b>\r\nX-Name: caf\xe9\r\n"
            b"x-other: \xc3\xa9\r\ncontent-length: 0\r\n\r\n"
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, http_client() as client:
        headers = (await client.get(f"http://127.0.0.1:{port}/")).headers
    assert isinstance(headers, Headers)
    assert dict(headers) == {
        "link": "<a>, <b>", "x-name": "café", "x-other": "é", "content-length": "0",
    }  # fmt: skip
    assert (headers["LINK"], headers.get("none", "-"), "X-Name" in headers) == (
        "<a>, <b>",
        "-",
        True,
    )
    assert headers.multi_items()[:2] == [("link", "<a>"), ("link", "<b>")]


@pytest.mark.parametrize("url", ["ftp://loki/", "/relative", "http:///path", "mailto:x"])
async def test_an_address_of_no_http_server_is_asked_nothing(url: str) -> None:
    async with http_client() as client:
        with pytest.raises((aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)):
            await client.get(url)


async def test_a_head_of_endless_headers_is_no_answer() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, http_client() as client:
        with pytest.raises(aiohttp.ClientError):
            await client.get(f"http://127.0.0.1:{port}/")


async def test_a_body_that_breaks_off_is_told_by_who_reads_it() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": "10"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with (
        serving(handler) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as answer,
    ):
        with pytest.raises(Unreachable):
            await read_capped(answer, 100)
