"""Certificates that prove nothing: the connection fails, whoever the client belongs to."""

import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from adapters.errors import Unreachable
from adapters.http.client import http_client
from adapters.http.errors import mapped_errors
from tests.fixtures_tls import NOW, certificate, serving_tls


def nobody(file: Path) -> None:
    """The usual trust, which does not know this authority."""


def its_authority(file: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(file))


Trust = Callable[[Path], ssl.SSLContext | None]


@pytest.mark.parametrize(
    ("trust", "host", "until"),
    [
        (nobody, "localhost", NOW + timedelta(days=9)),
        (its_authority, "other.test", NOW + timedelta(days=9)),
        (its_authority, "localhost", NOW - timedelta(days=1)),
    ],
    ids=["self-signed", "another host", "expired"],
)
async def test_nothing_is_sent_to_a_server_that_cannot_prove_itself(
    tmp_path: Path, trust: Trust, host: str, until: datetime, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, host, until)
    async with serving_tls(file) as url, http_client(tls=trust(file)) as client:
        with pytest.raises(Unreachable, match="cannot be reached"), mapped_errors("Loki"):
            await client.get(url)


async def test_one_that_can_is_asked(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, "localhost", NOW + timedelta(days=9))
    headers = {"authorization": "Bearer t"}
    async with serving_tls(file) as url, http_client(tls=its_authority(file), headers=headers) as c:
        assert (await c.get(url)).text == "Bearer t"
