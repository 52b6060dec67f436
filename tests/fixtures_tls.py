"""Servers that prove who they are, with certificates made on the spot."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.fixtures_http import Handler

NOW = datetime.now(UTC)


def certificate(
    folder: Path, host: str, until: datetime = NOW + timedelta(days=9), passphrase: bytes = b""
) -> Path:
    """A certificate of its own authority, with its key, in one file named after the host."""
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
    lock = serialization.BestAvailableEncryption(passphrase) if passphrase else None
    file = folder / f"{host}.pem"
    file.write_bytes(
        signed.public_bytes(pem)
        + key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, lock or serialization.NoEncryption()
        )
    )
    return file


async def echo_authorization(request: web.Request) -> web.Response:
    """Says who the client says it is."""
    return web.Response(text=request.headers.get("authorization", "nothing"))


@asynccontextmanager
async def serving_tls(
    file: Path, handler: Handler = echo_authorization, clients: Path | None = None
) -> AsyncIterator[str]:
    """With `clients`, no one is answered who does not go as that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if clients:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"https://localhost:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
