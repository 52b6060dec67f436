"""The egress guard: the hosts and addresses that this process may connect to.

A confinement (`[llm] mode = "local-only"`) holds for the whole process, so for every HTTP client,
also for one that was opened before. `adapters.http.transport` checks each request, and
`adapters.http.network` checks each resolved address.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from adapters.errors import Refused

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class LocalHosts:
    """Names (`ollama.internal`), globs (`*.svc.cluster.local`), addresses and networks (`10.0.0.0/8`).

    Loopback is always local. Only a network makes an address local, never a glob of names. A local
    name may resolve to private addresses, and to public ones inside the networks.
    """

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._networks: list[_Network] = []
        self._names = ["localhost", "*.localhost"]
        for each in declared:
            try:
                self._networks.append(ipaddress.ip_network(each.strip("[]"), strict=False))
            except ValueError:
                self._names.append(plain_host(each.strip()))

    def __contains__(self, host: str) -> bool:
        address = _address(host)
        if address is None:
            return any(fnmatchcase(plain_host(host.strip()), name) for name in self._names)
        return address.is_loopback or any(address in network for network in self._networks)

    def allows(self, resolved: str) -> bool:
        """Whether a local name may lead to this address."""
        address = _address(resolved)
        if address is None:
            return False
        return not _is_public(address) or any(address in network for network in self._networks)


_confinements: Final[list[LocalHosts]] = []


@contextmanager
def confined_to(local: LocalHosts) -> Iterator[None]:
    """Confine the requests of this process to `local` inside the block."""
    _confinements.append(local)
    try:
        yield
    finally:
        _confinements.remove(local)


def plain_host(host: str) -> str:
    """The host in lower case, without brackets and a final dot."""
    return host.strip("[]").lower().rstrip(".")


def check_notation(host: str) -> None:
    """Raises Refused for an IPv4 address in another notation: `127.1`, `2130706433`, `0x7f.1`.

    The operating system's resolver reads them, and a check by name would not know them.
    """
    last = host.rpartition(".")[2]
    if (last.isdigit() or last.startswith("0x")) and _address(host) is None:
        raise Refused(f"egress to {host} is refused: not a usual way to write an address")


def is_confined() -> bool:
    """Whether a confinement is in force: what the guard cannot check must not connect then."""
    return bool(_confinements)


def is_address(host: str) -> bool:
    """Whether it is an IP address rather than a name."""
    return _address(host) is not None


def check_egress(host: str) -> None:
    """Raises Refused for a host outside a confinement that is in force."""
    if any(host not in local for local in _confinements):
        raise Refused(f"egress to {host} is refused: only hosts declared local may be reached")


def check_program(name: str) -> None:
    """Raises Refused within a confinement: a program may reach any host."""
    if _confinements:
        raise Refused(f"{name} is not run: a program may reach any host, not only local ones")


def check_resolved(host: str, address: str) -> None:
    """Raises Refused when a name leads out of a confinement that is in force.

    The caller resolves a name, checks every address, and connects to one of them.
    """
    if not all(local.allows(address) for local in _confinements):
        raise Refused(
            f"egress to {host} is refused: it resolves to {address}, a public address that is not "
            "declared local"
        )


# NAT64's well-known prefix (RFC 6052): the last 32 bits are the IPv4 address that is reached.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class ReachableAddresses:
    """Public addresses, and the addresses of `networks`."""

    networks: tuple[_Network, ...] = ()

    def check(self, host: str) -> None:
        """Raises Refused for any other address. A name passes: its addresses are checked later."""
        address = _address(host)
        if address is None:
            return
        for each in (address, _carried(address)):
            if each is not None and not self._allows(each):
                raise Refused(
                    f"egress to {each} is refused: not a public address; name its network in `networks`"
                )

    def _allows(self, address: _Address) -> bool:
        public = _is_public(address) or address in _NAT64  # there, what it carries counts
        return public or any(address in network for network in self.networks)


# Addresses that the internet does not route, by IANA's special-purpose registries
# (https://www.iana.org/assignments/iana-ipv4-special-registry, -ipv6-; read 2026-11). The list is
# here because `ipaddress.is_global` depends on Python's release: 3.11 lets 192.0.0.192, fec0::1 and
# 3fff::1 through. Tunnel addresses (6to4, Teredo) never count as public. IANA has assigned only
# 2000::/3 of IPv6.
_GIVEN_OUT: Final = ipaddress.IPv6Network("2000::/3")
_SPECIAL_4: Final = tuple(
    ipaddress.IPv4Network(each)
    for each in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/3",
    )
)  # fmt: skip
_SPECIAL_6: Final = tuple(
    ipaddress.IPv6Network(each)
    for each in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


def _is_public(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    return address in _GIVEN_OUT and not any(address in network for network in _SPECIAL_6)


def _carried(address: _Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address within an IPv6 one that a gateway would send it to."""
    if isinstance(address, ipaddress.IPv6Address) and address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _address(host: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
