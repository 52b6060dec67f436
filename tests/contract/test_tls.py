"""Certificates that prove nothing: the connection fails, whoever the client belongs to."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from adapters.errors import Unreachable
from adapters.http import http_client, mapped_errors

NOW = datetime.now(UTC)


def certificate(folder: Path, host: str, until: datetime) -> Path:
    """A certificate of its own authority, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=9))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = folder / "server.pem"
    file.write_bytes(
        signed.public_bytes(pem)
        + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


@asynccontextmanager
async def serving_tls(file: Path) -> AsyncIterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("authorization", "nothing"))

    app.router.add_get("/", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"https://localhost:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


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
