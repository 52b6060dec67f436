"""When nothing may leave the network, every client is held to the hosts declared local."""

import pytest
from aiohttp import web

from adapters.egress import LocalHosts, confined_to
from adapters.errors import Refused
from adapters.http import http_client
from tests.fixtures_http import serving

DECLARED = LocalHosts(["ollama.internal", "*.svc.cluster.local", "10.0.0.0/8", "fd00::1"])


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "::ffff:127.0.0.1", "a.localhost",
     "ollama.internal", "OLLAMA.internal.", "loki.obs.svc.cluster.local", "10.1.2.3", "fd00::1"],
)  # fmt: skip
def test_what_is_declared_is_local(host: str) -> None:
    assert host in DECLARED


@pytest.mark.parametrize(
    "host",
    ["api.anthropic.com", "ollama.internal.evil.test", "svc.cluster.local", "169.254.169.254",
     "11.0.0.1", "0x7f.1", "2130706433", "fd00::2", "::ffff:8.8.8.8", "localhost.evil.test", ""],
)  # fmt: skip
def test_everything_else_is_not(host: str) -> None:
    assert host not in DECLARED


def test_an_address_is_local_by_a_network_only() -> None:
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


async def test_of_two_confinements_both_hold() -> None:
    with confined_to(LocalHosts(["a.test"])), confined_to(LocalHosts(["b.test"])):
        async with http_client() as client:
            with pytest.raises(Refused):
                await client.get("http://a.test/")


async def test_every_hop_of_a_redirect_is_held_to_it() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"location": "http://203.0.113.9/collect"})

    async with serving(handler) as url, http_client() as client:
        with confined_to(LocalHosts()), pytest.raises(Refused, match=r"203\.0\.113\.9"):
            await client.get(url, follow_redirects=True)
