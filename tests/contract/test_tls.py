"""Invalid certificates: the connection fails, for any client."""

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from adapters.errors import Unreachable
from adapters.http.client import http_client
from adapters.http.egress import ReachableAddresses
from adapters.http.errors import mapped_errors
from tests.fixtures_http import resolving
from tests.fixtures_peers import listening
from tests.fixtures_tls import NOW, certificate, serving_tls


def no_authority(file: Path) -> None:
    """The usual trust, which does not know this authority."""


def its_authority(file: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(file))


Trust = Callable[[Path], ssl.SSLContext | None]


@pytest.mark.parametrize(
    ("trust", "host", "until"),
    [
        (no_authority, "localhost", NOW + timedelta(days=9)),
        (its_authority, "other.test", NOW + timedelta(days=9)),
        (its_authority, "localhost", NOW - timedelta(days=1)),
    ],
    ids=["self-signed", "another host", "expired"],
)
async def test_nothing_is_sent_to_a_server_with_an_invalid_certificate(
    tmp_path: Path, trust: Trust, host: str, until: datetime, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, host, until)
    async with serving_tls(file) as url, http_client(tls=trust(file)) as client:
        with pytest.raises(Unreachable, match="cannot be reached"), mapped_errors("Loki"):
            await client.get(url)


async def test_a_server_with_a_valid_certificate_is_asked(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, "localhost", NOW + timedelta(days=9))
    headers = {"authorization": "Bearer t"}
    async with serving_tls(file) as url, http_client(tls=its_authority(file), headers=headers) as c:
        assert (await c.get(url)).text == "Bearer t"


@pytest.mark.parametrize(
    ("host", "is_asked"), [("pinned.test", True), ("localhost", False)], ids=["named", "another"]
)
async def test_a_server_behind_a_checked_address_must_prove_its_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    host: str,
    is_asked: bool,
) -> None:
    """The connection goes to the address that was checked; the certificate has to fit the name."""
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, host, NOW + timedelta(days=9))
    loopback = ReachableAddresses((ipaddress.ip_network("127.0.0.0/8"),))
    async with (
        serving_tls(file) as url,
        http_client(tls=its_authority(file), reachable=loopback) as c,
    ):
        asked = resolving(monkeypatch, "127.0.0.1", "127.0.0.1")
        told = await asyncio.gather(
            c.get(url.replace("localhost", "pinned.test")), return_exceptions=True
        )
    assert asked == ["pinned.test"]
    assert [isinstance(each, httpx.Response) for each in told] == [is_asked]


@pytest.mark.parametrize("pause_s", [0.05, 0.0], ids=["while idle", "in the same packet"])
@pytest.mark.parametrize(
    "stray",
    [
        b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstray",
        b"HTTP/1.1 200 O",
        b"\n",
    ],
    ids=["408", "200", "half a line", "a line's end"],
)
async def test_a_stray_answer_is_discarded(
    tmp_path: Path, request: pytest.FixtureRequest, stray: bytes, pause_s: float
) -> None:
    """TLS holds it back in a record of its own, where the socket shows nothing of it."""
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    number = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        while await reader.readuntil(b"\r\n\r\n"):
            number += 1
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % number)
            await asyncio.sleep(pause_s)
            writer.write(stray)
            await writer.drain()

    told = []
    async with (
        listening(peer, context) as url,
        http_client(tls=its_authority(file)) as client,
    ):
        there = url.replace("http://127.0.0.1", "https://localhost")
        for _ in range(4):
            told.append((await client.get(there)).text)
            await asyncio.sleep(2 * pause_s)
    assert told == ["1", "2", "3", "4"]


async def test_one_encrypted_connection_serves_request_after_request(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file, ports = certificate(tmp_path, "localhost"), set[int]()

    async def client_name(asked: web.Request) -> web.Response:
        assert asked.transport is not None
        ports.add(asked.transport.get_extra_info("peername")[1])
        return web.Response(text="x" * 100_000)

    async with (
        serving_tls(file, client_name) as url,
        http_client(tls=its_authority(file)) as client,
    ):
        for _ in range(4):
            await client.get(url)
    assert len(ports) == 1
