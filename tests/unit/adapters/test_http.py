"""The HTTP factory against real loopback servers, and the error table against httpx itself."""

import asyncio
import gzip
from email.utils import formatdate

import httpx
import pytest
from aiohttp import web

from adapters import errors
from adapters.http.body import read_capped
from adapters.http.client import http_client
from adapters.http.errors import check_status, mapped_errors, retry_after_s
from adapters.http.tls import ssl_context
from tests.fixtures_http import serving

HTTPX_EXCEPTIONS = sorted(
    {
        kind
        for kind in vars(httpx).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    },
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", HTTPX_EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_every_httpx_exception_class_becomes_one_of_ours(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    Exception.__init__(error, "token=hunter2")
    with pytest.raises(errors.AdapterError) as caught, mapped_errors("Loki"):
        raise error
    assert caught.value.__cause__ is error
    assert "hunter2" not in caught.value.message
    assert "Loki" in caught.value.message


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        (httpx.ReadTimeout("x"), errors.TimedOut),
        (httpx.PoolTimeout("x"), errors.TimedOut),
        (httpx.ConnectError("x"), errors.Unreachable),
        (httpx.RemoteProtocolError("x"), errors.BadAnswer),
        (httpx.UnsupportedProtocol("x"), errors.BadRequest),
        (TimeoutError(), errors.TimedOut),
        (ConnectionResetError(), errors.Unreachable),
    ],
)
def test_the_most_specific_row_wins(foreign: Exception, ours: type[errors.AdapterError]) -> None:
    with pytest.raises(ours), mapped_errors():
        raise foreign


def test_errors_that_are_not_about_http_pass_through() -> None:
    with pytest.raises(KeyError), mapped_errors():
        raise KeyError("x")


def test_our_own_errors_pass_through_unchanged() -> None:
    mine = errors.RateLimited("slow down", retry_after_s=3)
    with pytest.raises(errors.RateLimited) as caught, mapped_errors():
        raise mine
    assert caught.value is mine


@pytest.mark.parametrize(
    ("status", "ours"),
    [
        (302, errors.BadAnswer),
        (400, errors.BadRequest),
        (401, errors.Refused),
        (403, errors.Refused),
        (404, errors.NotFound),
        (408, errors.TimedOut),
        (422, errors.BadRequest),
        (429, errors.RateLimited),
        (500, errors.Overloaded),
        (504, errors.TimedOut),
        (529, errors.Overloaded),
    ],
)
def test_a_status_becomes_the_error_that_fits(status: int, ours: type[errors.AdapterError]) -> None:
    request = httpx.Request("GET", "http://loki:3100/ready?token=hunter2")
    response = httpx.Response(status, headers={"retry-after": "7"}, request=request)
    with pytest.raises(ours) as caught:
        check_status(response, "too busy")
    assert caught.value.status == status
    assert caught.value.retry_after_s == 7
    assert caught.value.message == f"loki/ready answered {status}: too busy"


def test_a_success_passes_even_with_a_retry_after() -> None:
    request = httpx.Request("GET", "http://loki:3100/ready")
    check_status(httpx.Response(200, headers={"retry-after": "7"}, request=request))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after-ms": "250", "retry-after": "12"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_retry_after_may_be_a_date() -> None:
    later = formatdate(4_102_444_800, usegmt=True)
    assert (retry_after_s({"retry-after": later}) or 0) > 86_400


async def test_a_request_reaches_the_server_with_its_headers() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"key": request.headers["x-api-key"], "path": request.path})

    async with (
        serving(handler) as url,
        http_client(base_url=url, headers={"x-api-key": "k"}) as client,
    ):
        response = await client.get("/v1/x")
    assert response.json() == {"key": "k", "path": "/v1/x"}


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="direct")

    async with serving(handler) as url, http_client(base_url=url) as client:
        assert (await client.get("/")).text == "direct"


async def test_cookies_of_one_answer_do_not_reach_the_next_request() -> None:
    async def handler(request: web.Request) -> web.Response:
        response = web.Response(text=request.headers.get("cookie", "none"))
        response.set_cookie("session", "1")
        return response

    async with serving(handler) as url, http_client(base_url=url) as client:
        await client.get("/")
        assert (await client.get("/")).text == "none"


async def test_redirects_are_not_followed() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"location": "http://elsewhere.invalid/"})

    async with serving(handler) as url, http_client(base_url=url) as client:
        assert (await client.get("/")).status_code == 302


async def test_the_guard_refuses_other_hosts_before_connecting() -> None:
    hits: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        hits.append(request.path)
        return web.Response()

    async with (
        serving(handler) as url,
        http_client(allowed_hosts=frozenset({"models.internal"})) as client,
    ):
        with pytest.raises(errors.Refused, match=r"egress to 127\.0\.0\.1 is not allowed"):
            await client.get(url)
    assert hits == []


async def test_the_guard_allows_hosts_in_any_case() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="in")

    async with (
        serving(handler) as url,
        http_client(allowed_hosts=frozenset({"LOCALHOST"})) as client,
    ):
        assert (await client.get(url.replace("127.0.0.1", "LocalHost"))).text == "in"


async def test_the_guard_checks_every_hop_of_a_redirect() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"location": "http://169.254.169.254/latest"})

    async with (
        serving(handler) as url,
        http_client(allowed_hosts=frozenset({"127.0.0.1"})) as client,
    ):
        with pytest.raises(errors.Refused, match=r"169\.254\.169\.254"):
            await client.get(url, follow_redirects=True)


async def test_a_closed_port_is_unreachable() -> None:
    async with http_client() as client:
        with (
            pytest.raises(errors.Unreachable, match=r"Loki cannot be reached \(Conn"),
            mapped_errors("Loki"),
        ):
            await client.get("http://127.0.0.1:9/")


async def test_silence_longer_than_the_limit_times_out() -> None:
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    async with serving(handler) as url, http_client(base_url=url, read_s=0.05) as client:
        with pytest.raises(errors.TimedOut), mapped_errors():
            await client.get("/")
        release.set()


async def test_a_server_that_hangs_up_is_unreachable_not_slow() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, http_client() as client:
        with pytest.raises(errors.Unreachable), mapped_errors():
            await client.post(f"http://127.0.0.1:{port}/", json={})


async def test_bytes_that_are_not_http_are_a_bad_answer() -> None:
    async def gibberish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"hello there\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(gibberish, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, http_client() as client:
        with pytest.raises(errors.BadAnswer), mapped_errors():
            await client.get(f"http://127.0.0.1:{port}/")


async def test_a_body_up_to_the_cap_is_read_completely() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1000)

    async with (
        serving(handler) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as response,
    ):
        assert await read_capped(response, 1000) == b"x" * 1000


async def test_the_cap_counts_decompressed_bytes() -> None:
    async def handler(request: web.Request) -> web.Response:
        body = gzip.compress(b"x" * 1_000_000)
        return web.Response(body=body, headers={"content-encoding": "gzip"})

    async with (
        serving(handler) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as response,
    ):
        with pytest.raises(errors.BadAnswer, match="more than 50000 bytes"):
            await read_capped(response, 50_000)


async def test_a_broken_encoding_is_a_bad_answer() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=b"not gzip", headers={"content-encoding": "gzip"})

    async with (
        serving(handler) as url,
        http_client(base_url=url) as client,
        client.stream("GET", "/") as response,
    ):
        with pytest.raises(errors.BadAnswer):
            await read_capped(response, 50_000)


def test_there_is_one_tls_context() -> None:
    assert ssl_context() is ssl_context()
