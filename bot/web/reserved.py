"""A port that is kept for several processes, which listen there beside each other.

Nothing arrives at a socket that does not listen. Bound alone and marked as shared afterwards, it
finds out whether anybody else is there, which sockets that are shared from the start do not.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def reserved(host: str, port: int) -> Iterator[int]:
    """The port, another one for 0. Raises OSError when the address is taken or unknown."""
    with ExitStack() as kept:
        asked = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(asked):
            held = kept.enter_context(socket.socket(family, kind, protocol))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            held.bind((address[0], port, *address[2:]))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            port = port or held.getsockname()[1]
        yield port
