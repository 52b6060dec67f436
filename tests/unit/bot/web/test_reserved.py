"""A port kept for several processes: found to be in use once, before any of them starts."""

import socket

import pytest

from bot.web.reserved import reserved

HERE = "127.0.0.1"


def listening(port: int) -> socket.socket:
    """As a worker does."""
    return socket.create_server((HERE, port), reuse_port=True)


def test_several_listen_at_a_port_that_is_kept() -> None:
    with reserved(HERE, 0) as port, listening(port) as one, listening(port) as other:
        assert one.getsockname() == other.getsockname() == (HERE, port)


def test_nothing_arrives_at_what_only_keeps_it() -> None:
    with reserved(HERE, 0) as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection((HERE, port))


def test_a_port_where_others_share_is_in_use() -> None:
    with reserved(HERE, 0) as port, listening(port):  # noqa: SIM117 - the port is the first one's
        with pytest.raises(OSError, match="in use"), reserved(HERE, port):
            pass


def test_every_address_of_a_name_is_kept() -> None:
    with reserved("localhost", 0) as port, listening(port):  # noqa: SIM117 - as above
        with pytest.raises(OSError, match="in use"), reserved("localhost", port):
            pass
