"""Which addresses a confined client may connect to."""

import ipaddress
import socket

import aiohttp
import pytest

from adapters.egress import ReachableAddresses
from adapters.errors import Refused
from adapters.http import http_client

INSIDE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "[::1]", "fe80::1", "fe80::1%eth0",
    "fd00:ec2::254", "ff02::1", "::ffff:169.254.169.254", "[::ffff:7f00:1]", "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1", "::",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_refused(address: str) -> None:
    with pytest.raises(Refused):
        ReachableAddresses().check(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "name"])
def test_a_public_address_and_a_name_pass(address: str) -> None:
    ReachableAddresses().check(address)


def test_a_network_that_is_named_is_reached_and_no_other() -> None:
    rule = ReachableAddresses((ipaddress.ip_network("10.20.0.0/16"),))
    rule.check("10.20.3.4")
    with pytest.raises(Refused):
        rule.check("10.21.3.4")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "localhost", "2130706433", "0x7f.1", "127.1"],
)  # fmt: skip
async def test_a_confined_client_refuses_before_it_connects(host: str) -> None:
    client = http_client(reachable=ReachableAddresses())
    async with client:
        with pytest.raises(Exception, match=r"canonical|not a public"):
            await client.get(f"http://{host}:9/")


async def test_a_name_is_resolved_once_and_a_mixed_answer_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def resolve(self: object, host: str, port: int, family: int) -> list[dict[str, object]]:
        asked.append(host)
        return [
            {"hostname": host, "host": address, "port": port,
             "family": socket.AF_INET, "proto": 0, "flags": 0}
            for address in ("8.8.8.8", "127.0.0.1")
        ]  # fmt: skip

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)
    async with http_client(reachable=ReachableAddresses()) as client:
        with pytest.raises(Refused, match=r"127\.0\.0\.1"):
            await client.get("http://rebinding.test/")
    assert asked == ["rebinding.test"]
