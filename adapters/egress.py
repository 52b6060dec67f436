"""Where this process may connect to when nothing may leave the network.

Process-wide on purpose: it holds for every HTTP client, whoever opens it and whenever. What is
declared local is the operator's; the check of each request is made by `adapters.http`.
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

    Loopback always is local. An address is local by a network only, never by a glob of names.
    """

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._networks: list[_Network] = []
        self._names = ["localhost", "*.localhost"]
        for each in declared:
            try:
                self._networks.append(ipaddress.ip_network(each.strip("[]"), strict=False))
            except ValueError:
                self._names.append(_plain(each))

    def __contains__(self, host: str) -> bool:
        address = _address(host)
        if address is None:
            return any(fnmatchcase(_plain(host), name) for name in self._names)
        return address.is_loopback or any(address in network for network in self._networks)


_confinements: Final[list[LocalHosts]] = []


@contextmanager
def confined_to(local: LocalHosts) -> Iterator[None]:
    """Within it, requests of this process reach nothing but `local`."""
    _confinements.append(local)
    try:
        yield
    finally:
        _confinements.remove(local)


def check_egress(host: str) -> None:
    """Raises Refused for a host outside a confinement that is in force."""
    if any(host not in local for local in _confinements):
        raise Refused(f"egress to {host} is refused: only hosts declared local may be reached")


# NAT64's well-known prefix (RFC 6052): the last 32 bits are the IPv4 address that is reached.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class ReachableAddresses:
    """Public addresses, and those of the networks that are named."""

    networks: tuple[_Network, ...] = ()

    def check(self, host: str) -> None:
        """Raises Refused for any other address; a name passes, its addresses are asked in turn."""
        address = _address(host)
        if address is None:
            return
        for each in (address, _carried(address)):
            if each is not None and not self._allows(each):
                raise Refused(f"egress to {each} is refused: not a public address")

    def _allows(self, address: _Address) -> bool:
        public = address.is_global and not address.is_multicast and not address.is_reserved
        if address in _NAT64:
            public = True  # what counts is the address that it carries
        return public or any(address in network for network in self.networks)


def _carried(address: _Address) -> _Address | None:
    """The IPv4 address within an IPv6 one that a gateway would send it to."""
    if not isinstance(address, ipaddress.IPv6Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)


def _address(host: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _plain(name: str) -> str:
    return name.strip().lower().rstrip(".")
