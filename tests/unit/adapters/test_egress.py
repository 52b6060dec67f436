"""When nothing may leave the network, every client is held to the hosts declared local."""

import pytest
from aiohttp import web

from adapters.errors import AdapterError, BadRequest, Refused
from adapters.http.client import http_client
from adapters.http.egress import (
    LocalHosts,
    ReachableAddresses,
    check_notation,
    confined_to,
    plain_host,
)
from adapters.http.errors import mapped_errors
from adapters.on_call.json_endpoint import JsonOnCall
from tests.fixtures_http import resolving, serving

DECLARED = LocalHosts(["ollama.internal", "*.svc.cluster.local", "10.0.0.0/8", "fd00::1"])


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "::ffff:127.0.0.1", "a.localhost",
     "ollama.internal", "OLLAMA.internal.", "loki.obs.svc.cluster.local", "10.1.2.3", "fd00::1"],
)  # fmt: skip
def test_a_declared_host_is_local(host: str) -> None:
    assert host in DECLARED


@pytest.mark.parametrize(
    "host",
    ["api.anthropic.com", "ollama.internal.evil.test", "svc.cluster.local", "169.254.169.254",
     "11.0.0.1", "0x7f.1", "2130706433", "fd00::2", "::ffff:8.8.8.8", "localhost.evil.test", ""],
)  # fmt: skip
def test_any_other_host_is_not_local(host: str) -> None:
    assert host not in DECLARED


def test_an_address_is_local_only_by_a_network() -> None:
    assert "8.8.8.8" not in LocalHosts(["*"])


async def test_a_client_opened_before_is_confined_and_free_again_afterwards() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="in")

    async with serving(handler) as url, http_client() as client:
        with confined_to(LocalHosts()):
            with pytest.raises(Refused, match=r"models\.example is refused"):
                await client.get("http://models.example/")
            assert (await client.get(url)).text == "in"
        assert (await client.get(url)).text == "in"


async def test_two_confinements_both_apply() -> None:
    with confined_to(LocalHosts(["a.test"])), confined_to(LocalHosts(["b.test"])):
        async with http_client() as client:
            with pytest.raises(Refused):
                await client.get("http://a.test/")


@pytest.mark.parametrize("address", ["203.0.112.9", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
async def test_a_local_name_that_resolves_to_a_public_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    resolving(monkeypatch, address)
    async with http_client() as client:
        with (
            confined_to(LocalHosts(["ollama.internal"])),
            pytest.raises(Refused, match=r"ollama\.internal is refused: it resolves to"),
        ):
            await client.get("http://ollama.internal:9/")


async def test_a_public_address_that_is_declared_is_local() -> None:
    assert LocalHosts(["ollama.internal", "203.0.112.0/24"]).allows("203.0.112.9")


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.1", "fd00::1", "127.0.0.1"])
async def test_a_local_name_may_resolve_only_inside(address: str) -> None:
    assert LocalHosts(["ollama.internal"]).allows(address)


async def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="in", headers={"connection": "close"})

    async with serving(handler) as url, http_client() as client:
        there = url.replace("127.0.0.1", "ollama.internal")
        resolving(monkeypatch, "127.0.0.1", "8.8.8.8")
        with confined_to(LocalHosts(["ollama.internal"])):
            assert (await client.get(there)).text == "in"


async def test_the_second_connection_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="in", headers={"connection": "close"})

    async with serving(handler) as url:
        there = url.replace("127.0.0.1", "ollama.internal")
        resolving(monkeypatch, "127.0.0.1", "8.8.8.8")
        with confined_to(LocalHosts(["ollama.internal"])):
            async with http_client() as client:
                assert (await client.get(there)).text == "in"
            async with http_client() as client:
                with pytest.raises(Refused, match=r"8\.8\.8\.8"):
                    await client.get(there)


async def test_a_rota_is_confined_too(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "8.8.8.8")
    with confined_to(LocalHosts(["rota.internal"])), pytest.raises(Refused, match="public"):
        await JsonOnCall("http://rota.internal/", "users", 1.0).people()


@pytest.mark.parametrize(
    "host",
    ["127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5",
     "10.1.", "0", "0X7F.1", "metadata.0x1", "127.1.", "0x7f.1.", "017700000001", "4294967296", "256.256.256.256",
     "127.0.0.0x1", "0251.0376.0251.0376", "169.254.43518", "0o177.0.0.1", "127.00.0.1", "00", "1.1", "0b1111111.1", "0177.1", "0x7f.0.0.0x1"],
)  # fmt: skip
async def test_an_address_in_another_notation_is_refused_by_every_client(host: str) -> None:
    """By our own check, with any version of httpx."""
    with pytest.raises(Refused, match="not a usual way"):
        check_notation(plain_host(host))
    async with http_client() as client:
        with pytest.raises((Refused, BadRequest)), mapped_errors():
            await client.get(f"http://{host}:9/")


@pytest.mark.parametrize(
    "host",
    [
        "１２７.1",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "127｡1",
        "١٢٧.0.0.1",
        "127.0.0.1%00.example",
        "%31%32%37.1",
        "①②⑦.⓪.⓪.①",
        "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
        "127\u20240\u20240\u20241",
        "1\u00ad27.0.0.1",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    ],
)
async def test_digits_of_other_scripts_are_refused(host: str) -> None:
    async with http_client(reachable=ReachableAddresses()) as client:
        with pytest.raises(AdapterError), mapped_errors():
            await client.get(f"http://{host}:9/")
