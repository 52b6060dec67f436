"""Which addresses a confined client may connect to."""

import ipaddress

import pytest

from adapters.errors import Refused
from adapters.http.client import http_client
from adapters.http.egress import ReachableAddresses
from tests.fixtures_http import resolving

INSIDE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "[::1]", "fe80::1", "fe80::1%eth0",
    "fd00:ec2::254", "ff02::1", "::ffff:169.254.169.254", "[::ffff:7f00:1]", "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1", "::",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_a_private_address_is_refused(address: str) -> None:
    with pytest.raises(Refused):
        ReachableAddresses().check(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "name"])
def test_a_public_address_and_a_name_pass(address: str) -> None:
    ReachableAddresses().check(address)


# Every range of IANA's special-purpose registries that is not plain unicast, by its ends.
SPECIAL_4 = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32",
    "192.0.0.170/32", "192.0.0.171/32", "192.0.0.192/32", "192.0.2.0/24", "192.31.196.0/24",
    "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "255.255.255.255/32",
]  # fmt: skip
SPECIAL_6 = [
    "::/128", "::1/128", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64",
    "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128",
    "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28",
    "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
    "4000::/3", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
]  # fmt: skip


def ends(network: str) -> list[str]:
    found = ipaddress.ip_network(network)
    return [str(found[0]), str(found[-1])]


@pytest.mark.parametrize("network", SPECIAL_4 + SPECIAL_6)
def test_a_special_purpose_range_is_refused_at_both_ends(network: str) -> None:
    for address in ends(network):
        with pytest.raises(Refused):
            ReachableAddresses().check(address)


def embedded(address: str) -> list[str]:
    """IPv6 addresses that some gateway, tunnel or stack sends to this IPv4 one."""
    four = int(ipaddress.IPv4Address(address))
    high, low = f"{four >> 16:x}", f"{four & 0xFFFF:x}"
    client = four ^ 0xFFFFFFFF  # RFC 4380: a Teredo client's address is stored inverted
    return [
        f"::ffff:{high}:{low}",
        f"[::ffff:{address}]",
        f"::{high}:{low}",
        f"::ffff:0:{high}:{low}",
        f"64:ff9b::{high}:{low}",
        f"64:ff9b:1::{high}:{low}",
        f"2002:{high}:{low}::1",
        f"2001:0:{high}:{low}::1",
        f"2001:0:808:808:0:0:{client >> 16:x}:{client & 0xFFFF:x}",
    ]


@pytest.mark.parametrize("network", SPECIAL_4)
def test_a_special_address_is_refused_in_every_embedding(network: str) -> None:
    for address in (each for end in ends(network) for each in embedded(end)):
        with pytest.raises(Refused):
            ReachableAddresses().check(address)


@pytest.mark.parametrize(
    "address",
    ["1.0.0.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
     "128.0.0.0", "169.253.255.255", "172.15.255.255", "172.32.0.0", "191.255.255.255",
     "192.0.1.0", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255",
     "2000::", "2001:200::", "2001:db7::1", "2001:db9::1", "2003::1", "2400:cb00::1", "3ffe::1"],
)  # fmt: skip
def test_the_neighbours_of_special_ranges_are_public(address: str) -> None:
    ReachableAddresses().check(address)


def test_only_a_declared_network_is_reached() -> None:
    rule = ReachableAddresses((ipaddress.ip_network("10.20.0.0/16"),))
    rule.check("10.20.3.4")
    with pytest.raises(Refused):
        rule.check("10.21.3.4")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "localhost", "2130706433", "0x7f.1", "127.1",
     "0x7f000001", "127.0.1", "127.0.0.1.", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
     "[::1%25lo]", "[fe80::1%25eth0]", "[::ffff:7f00:1%25lo]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[::ffff:0:127.0.0.1]",
     "127.1.", "0", "LOCALHOST", "[::]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:a9fe:a9fe]", "0.0.0.0", "[::1%25]",
     "[fe80::a9fe:a9fe%251]", "169.254.169.254.", "[64:ff9b::a9fe:a9fe]"],
)  # fmt: skip
async def test_a_confined_client_refuses_before_it_connects(host: str) -> None:
    client = http_client(reachable=ReachableAddresses())
    async with client:
        with pytest.raises(Refused, match=r"not a usual way|not a public"):
            await client.get(f"http://{host}:9/")


async def test_a_name_is_resolved_once_and_a_mixed_answer_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = resolving(monkeypatch, ("8.8.8.8", "127.0.0.1"))
    async with http_client(reachable=ReachableAddresses()) as client:
        with pytest.raises(Refused, match=r"127\.0\.0\.1"):
            await client.get("http://rebinding.test/")
    assert asked == ["rebinding.test"]


async def test_a_name_that_leads_inside_at_the_second_look_up_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with http_client(reachable=ReachableAddresses()) as client:
        resolving(monkeypatch, ("192.0.2.1", "169.254.169.254"))
        with pytest.raises(Refused, match="not a public"):
            await client.get("http://rebinding.test:9/")
        resolving(monkeypatch, "169.254.169.254")
        with pytest.raises(Refused, match=r"169\.254\.169\.254"):
            await client.get("http://rebinding.test:9/")
