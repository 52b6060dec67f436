"""What servers get from an HTTP client, and what a client makes of their answers."""

import asyncio
import gzip
import json
import socket
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from aiohttp import web

from adapters.errors import BadAnswer, BadRequest, Refused, Unreachable
from adapters.http.body import read_capped
from adapters.http.client import http_client
from adapters.http.errors import mapped_errors
from adapters.http.tls import ssl_context
from adapters.http.transport import Route
from tests.fixtures_http import resolving, serving
from tests.fixtures_peers import OK, listening


@pytest.mark.parametrize(
    "query",
    ['{a="b"} |= `x & y`', "+%2B %", "ümläut 日本", "a=b&c=d#e?f", "", "\x00\x1f\x7f"],
)
async def test_a_server_receives_path_and_query_exactly(query: str) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response([request.path, request.query.getall("query")])

    async with serving(handler) as url, http_client(base_url=url) as client:
        answer = await client.get("/a b", params={"query": query})
    assert answer.json() == ["/a b", [query]]


async def test_the_request_head_is_entirely_ours() -> None:
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")

    async with listening(handle) as url, http_client(headers={"X-Key": "k"}) as client:
        await client.get(f"{url}/a?b", headers={"Accept": "text/plain"})
        await client.post(f"{url}/", json={})
    get, post = (head.decode().lower().split("\r\n") for head in heads)
    usual = {f"host: {url.removeprefix('http://')}", "accept-encoding: gzip, deflate",
             "connection: keep-alive", "user-agent: kortex", "x-key: k", ""}  # fmt: skip
    assert (get[0], set(get[1:])) == ("get /a?b http/1.1", usual | {"accept: text/plain"})
    length, kind = "content-length: 2", "content-type: application/json"
    assert (post[0], set(post[1:])) == ("post / http/1.1", usual | {"accept: */*", length, kind})


async def test_a_client_that_keeps_cookies_sends_them_back() -> None:
    async def handler(request: web.Request) -> web.Response:
        response = web.Response(text=request.headers.get("cookie", "none"))
        response.headers.add("set-cookie", "session=a/1+b==; Path=/")
        return response

    async with serving(handler) as url, http_client(base_url=url, keeps_cookies=True) as client:
        assert [(await client.get("/")).text for _ in range(2)] == ["none", "session=a/1+b=="]


async def test_a_route_applies_only_to_its_own_host() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("x-way", "none"))

    route = Route(headers=(("X-Way", "own"),))
    async with serving(handler) as url, http_client(routes={"LocalHost": route}) as client:
        there = url.replace("127.0.0.1", "localhost")
        told = [(await client.get(each)).text for each in (url, there)]
        told.append((await client.get(there, headers={"x-way": "mine"})).text)
    assert told == ["none", "own", "mine"]


async def test_a_query_of_64_kb_is_sent_and_a_longer_one_is_a_bad_request() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=str(len(request.query["query"])))

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = str(len(head.partition(b" HTTP")[0])).encode()
        writer.write(OK + b"content-length: %d\r\n\r\n%s" % (len(size), size))
        await reader.read()

    async with listening(peer) as url, http_client(base_url=url) as client:
        assert int((await client.get("/", params={"query": "x" * 65_000})).text) > 65_000
        with pytest.raises(BadRequest), mapped_errors():
            await client.get("/", params={"query": "x" * 70_000})


async def test_a_connection_closed_meanwhile_is_reopened() -> None:
    accepted = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"content-length: 2\r\n\r\nok")
        await writer.drain()
        await reader.read(1)  # it closes as the next request arrives

    async with listening(once) as url, http_client(base_url=url) as client:
        assert [(await client.get("/")).text for _ in range(2)] == ["ok", "ok"]
    assert accepted == 2


@pytest.mark.parametrize(
    ("method", "asked"),
    [("GET", 2), ("HEAD", 2), ("PUT", 1), ("DELETE", 1), ("POST", 1), ("PATCH", 1)],
)
async def test_a_request_that_may_have_taken_effect_is_not_repeated(
    method: str, asked: int
) -> None:
    heard = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        await reader.readuntil(b"\r\n\r\n")
        heard += 1

    async with listening(peer) as url, http_client(base_url=url) as client:
        with pytest.raises(Unreachable), mapped_errors():
            await client.request(method, "/")
    assert heard == asked


async def test_connections_are_reused_after_a_complete_body_and_closed_after_a_part() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        port = request.transport.get_extra_info("peername")[1]
        return web.Response(text=f"{port}".ljust(3_000_000))

    async with serving(handler) as url, http_client(base_url=url) as client:
        ports = [(await client.get("/")).text.strip() for _ in range(2)]
        async with client.stream("GET", "/") as answer:
            await anext(answer.aiter_raw())
        ports.append((await client.get("/")).text.strip())
    assert ports[0] == ports[1] != ports[2]


async def test_concurrent_requests_get_their_own_answers() -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(0.01)
        return web.Response(body=await request.read())

    async with serving(handler) as url, http_client(base_url=url) as client:
        said = [f"{number}".encode() for number in range(50)]
        answers = await asyncio.gather(*(client.post("/", content=each) for each in said))
    assert [answer.content for answer in answers] == said


@pytest.mark.parametrize("where", ["head", "body"])
async def test_a_cancelled_request_reaches_its_server_within_100_ms(where: str) -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if where == "body":
            writer.write(OK + b"content-length: 9\r\n\r\nhalf")
        asked.set()
        await reader.read()
        left.set()

    async with listening(peer) as url, http_client(base_url=url) as client:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(client.get("/"))
            await asked.wait()
            before_s = time.monotonic()
            task.cancel()
        await left.wait()
    assert time.monotonic() - before_s < 0.1


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("identity", lambda data: data),
        ("identity, GZIP", gzip.compress),
    ],
)
async def test_one_layer_of_compression_is_removed(
    encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    whole = bytes(range(256)) * 4000

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=compress(whole), headers={"content-encoding": encoding})

    async with (
        serving(handler) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as answer,
    ):
        assert await read_capped(answer, len(whole)) == whole


@pytest.mark.parametrize("encoding", ["gzip, gzip", "deflate, gzip", "br", "unheard-of"])
async def test_every_other_compression_is_a_bad_answer_with_its_status(encoding: str) -> None:
    async def handler(_: web.Request) -> web.Response:
        body = gzip.compress(gzip.compress(b"{}"))
        return web.Response(status=503, body=body, headers={"content-encoding": encoding})

    async with (
        serving(handler) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as answer,
    ):
        assert answer.status_code == 503
        with pytest.raises(BadAnswer):
            await read_capped(answer, 1000)


async def test_a_compression_bomb_is_stopped_early() -> None:
    bomb = gzip.compress(bytes(200_000_000), compresslevel=1)

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"content-encoding": "gzip"})

    async with (
        serving(handler) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as answer,
    ):
        sizes = [len(piece) async for piece in _first(answer.aiter_bytes(), 3)]
    assert max(sizes) <= 1024 * 1024


async def _first(pieces: AsyncIterator[bytes], count: int) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield piece
        if not (count := count - 1):
            return


async def test_headers_are_joined_in_any_case() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Link: <a>\r\nlink: <b>\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async with listening(peer) as url, http_client() as client:
        headers = (await client.get(url)).headers
    assert (headers["LINK"], headers.get("none", "-")) == ("<a>, <b>", "-")
    assert headers.multi_items()[:2] == [("link", "<a>"), ("link", "<b>")]


@pytest.mark.parametrize("url", ["ftp://loki/", "/relative", "http:///path", "mailto:x"])
async def test_an_address_without_http_is_a_bad_request(url: str) -> None:
    async with http_client() as client:
        with pytest.raises(BadRequest), mapped_errors():
            await client.get(url)


async def test_a_body_that_breaks_off_is_unreachable() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"content-length: 10\r\n\r\nhalf")

    async with (
        listening(peer) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as answer,
    ):
        with pytest.raises(Unreachable):
            await read_capped(answer, 100)


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


async def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["host"])

    async with serving(handler) as url, http_client() as client:
        port = httpx.URL(url).port
        resolving(monkeypatch, ("127.0.0.9", "127.0.0.1"))
        told = (await client.get(f"http://two.test:{port}/")).text
    assert told == f"two.test:{port}"


async def test_a_proxys_own_host_must_be_allowed_too() -> None:
    from adapters.http.egress import LocalHosts, confined_to

    async with http_client(proxy="http://proxy.example:3128") as client:
        with confined_to(LocalHosts(["loki.internal"])), pytest.raises(Refused, match="proxy"):
            await client.get("http://loki.internal/")


async def test_json_is_sent_compact() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async with serving(handler) as url, http_client(base_url=url) as client:
        answer = await client.post("/", json={"a": ["ü", 1, None]})
    assert json.loads(answer.content) == {"a": ["ü", 1, None]}
    assert answer.content == '{"a":["ü",1,null]}'.encode()


async def test_a_resolver_that_hangs_holds_no_thread_of_other_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await asyncio.to_thread(ssl_context)  # reads files, which counts against the deadline
    goes_on, asked_for = threading.Event(), list[object]()

    def hang(host: object, *_: object, **__: object) -> list[object]:
        asked_for.append(host)
        goes_on.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        async with http_client(connect_s=0.05, read_s=0.05) as client:
            asked = [client.get(f"http://name{number}.test/") for number in range(40)]
            failed = await asyncio.gather(*asked, return_exceptions=True)
            async with asyncio.timeout(15):
                read = await asyncio.to_thread(int, "7")
    finally:
        goes_on.set()

    assert read == 7
    assert len(asked_for) > 1
    assert {type(each) for each in failed} <= {httpx.ConnectTimeout, httpx.ReadTimeout}
