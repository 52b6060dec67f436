"""TLS contexts: the usual roots, or an operator's own authority and client certificate.

Everything here reads files, so callers run it in a thread.
"""

import ssl
from functools import cache
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 4 << 20  # the system's whole bundle is a twentieth of it


class FileUnusable(ValueError):
    """A file of certificates cannot be used. `setting` names the parameter, such as `ca_file`."""

    def __init__(self, setting: str, file: Path, why: str) -> None:
        super().__init__(f"{setting}: {file} {why}")
        self.setting = setting


@cache
def ssl_context() -> ssl.SSLContext:
    """The process's one TLS context with the usual trust: building one reads files for 20 ms."""
    return usual_trust()


def usual_trust() -> ssl.SSLContext:
    """certifi's roots and the system's own store, where operators put private authorities."""
    context = public_trust()
    context.load_default_certs()
    return context


def public_trust() -> ssl.SSLContext:
    """certifi's roots alone."""
    import certifi  # a service that only listens needs none

    return ssl.create_default_context(cafile=certifi.where())


def own_trust(ca_file: str, client_certificate: str, client_key: str) -> ssl.SSLContext | None:
    """A TLS context from an operator's files; None without files. Raises FileUnusable.

    With `ca_file` the context trusts that authority alone. An empty `client_key` means that the
    certificate's file holds the key.
    """
    if not (ca_file or client_certificate):
        return None
    context = _trusting(ca_file) if ca_file else usual_trust()
    if client_certificate:
        _go_as(context, client_certificate, client_key)
    return context


def _trusting(ca_file: str) -> ssl.SSLContext:
    path, text = _read("ca_file", ca_file)
    try:
        # People keep notes in these files, in any alphabet. The line break is for an empty file:
        # OpenSSL loads the default authorities when it gets no text at all.
        return ssl.create_default_context(cadata=text.decode("ascii", "ignore") + "\n")
    except (ssl.SSLError, ValueError) as error:
        raise FileUnusable("ca_file", path, "holds no certificate that can be read") from error


def _go_as(context: ssl.SSLContext, client_certificate: str, client_key: str) -> None:
    path, _ = _read("client_certificate", client_certificate)
    key = _read("client_key", client_key)[0] if client_key else None
    try:
        # With a password given, OpenSSL does not ask at the terminal for the key's passphrase.
        context.load_cert_chain(path, key, password="")
    except ssl.SSLError as error:
        what = "is not a certificate with its key in PEM, without a passphrase"
        raise FileUnusable("client_certificate", path, what) from error


def _read(setting: str, name: str) -> tuple[Path, bytes]:
    path = Path(name).expanduser()
    try:
        if not path.is_file():
            raise FileUnusable(setting, path, "is no file")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, FileUnusable):
            raise
        why = getattr(error, "strerror", None) or "no path"
        raise FileUnusable(setting, path, f"cannot be read ({why})") from error
    if len(raw) > MAX_FILE_BYTES:
        raise FileUnusable(setting, path, f"is larger than {MAX_FILE_BYTES} bytes")
    return path, raw
