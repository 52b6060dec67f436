"""The ways to a server over HTTP: credentials, headers, certificates, a proxy, how long is waited."""

import re
from datetime import timedelta
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from bot.settings.section import Duration, Section, Token

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")  # RFC 9110 §5.6.2
# What the connection itself sets: another value would desynchronise it, or name another host.
_OF_THE_CONNECTION: Final = frozenset(
    ("host", "content-length", "content-type", "content-encoding", "transfer-encoding", "te",
     "connection", "keep-alive", "upgrade", "trailer", "expect", "proxy-authorization",
     "proxy-connection", "accept-encoding")
)  # fmt: skip
AUTHORIZATION: Final = "authorization"
TENANT_HEADER: Final = "X-Scope-OrgID"  # of Loki, Mimir and Tempo


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("is not a valid HTTP header name")
    if name.lower() in _OF_THE_CONNECTION:
        raise ValueError("is set by the connection itself")
    return name


def _sendable_text(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise ValueError("holds a line break or another character that no header may hold")
    return text


def _proxy(url: str) -> str:
    if not url:
        return url
    try:
        parts = urlsplit(url)
        known = parts.scheme == "http" and parts.hostname and (parts.port or 1)
    except ValueError:
        known = False
    if not known or parts.path.strip("/") or parts.query or parts.fragment or not url.isascii():
        raise ValueError("write the address of an HTTP proxy, such as http://proxy:3128")
    return url


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderText = Annotated[str, AfterValidator(_sendable_text)]  # goes into a header, and is no secret
ProxyAddress = Annotated[str, AfterValidator(_proxy)]


class RouteSettings(Section):
    """How a server is reached, by any caller. Files are PEM and are read at the start.

    `ca_file` replaces the authorities that are trusted otherwise. `client_key` is left out if
    `client_certificate` contains the key. `proxy` may hold a user and a password. An answer has to
    be whole within `connect_timeout` and `timeout` together.
    """

    headers: dict[HeaderName, Token] = Field(default_factory=dict)
    ca_file: str = ""
    client_certificate: str = ""
    client_key: str = ""
    proxy: ProxyAddress = ""
    connect_timeout: Duration = timedelta(seconds=5)
    timeout: Duration = timedelta(minutes=5)

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        names = [name.lower() for name in self.headers]
        if len(names) != len(set(names)):
            raise ValueError("headers: one is named twice")
        if self.client_key and not self.client_certificate:
            raise ValueError("client_key needs client_certificate")
        return self


class AccessSettings(RouteSettings):
    """With one identity for all: a bearer `token`, or basic credentials, or a header of its own."""

    token: Token = SecretStr("")
    user: HeaderText = ""
    password: Token = SecretStr("")

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        if ":" in self.user:
            raise ValueError("user must not hold a colon")  # RFC 7617 §2
        if self.password.get_secret_value() and not self.user:
            raise ValueError("password needs user")
        if self._identities() > 1:
            raise ValueError("set one of token, user and an Authorization header")
        return self

    def _identities(self) -> int:
        own = any(name.lower() == AUTHORIZATION for name in self.headers)
        return bool(self.token.get_secret_value()) + bool(self.user) + own


class SinkAccessSettings(AccessSettings):
    """The address for rows of the audit log: a sink that does not answer must not delay others."""

    timeout: Duration = timedelta(seconds=10)

    def with_token(self, token: SecretStr) -> Self:
        """The same with a token from another setting. Raises ValueError for two identities."""
        if not token.get_secret_value():
            return self
        if self._identities():
            raise ValueError("there are credentials beside the token; set one of them")
        return self.model_copy(update={"token": token})
