"""`[mcp]`: which servers, and which of their tools, as the operator accepted them."""

from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from bot.settings.section import Duration, Section, Token

LONGEST_CALL_S: Final = 300


class McpToolSettings(Section):
    """A tool that is accepted: the hash that `kortex check` prints, and what it does by your word.

    `because` says why it only reads, where name, description or parameters look like a change.
    """

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    effect: Literal["read", "write"]
    because: str = Field(default="", max_length=200)


class McpServerSettings(Section):
    """`[mcp.servers.NAME]`: a program (`command`) or an address (`url`).

    The program gets the variables of `env`, which are secrets, and the variables named in
    `inherit`. `networks` are private networks that the address may be in. `local` declares that the
    program reaches no other host; local-only mode requires it. `allowed_sessions` are globs.
    """

    command: tuple[str, ...] = ()
    env: dict[str, SecretStr] = Field(default_factory=dict)
    inherit: tuple[str, ...] = ()
    local: bool = False
    url: str = ""
    token: Token = SecretStr("")
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    allowed_sessions: tuple[str, ...] = ("*",)
    timeout: Duration = Field(default=timedelta(seconds=30), le=timedelta(seconds=LONGEST_CALL_S))
    tools: dict[str, McpToolSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_kind(self) -> "McpServerSettings":
        if bool(self.command) == bool(self.url):
            raise ValueError("set either command or url")
        if self.url and (self.env or self.inherit or self.local):
            raise ValueError("env, inherit and local belong to a command")
        if self.command and (self.token.get_secret_value() or self.networks):
            raise ValueError("token and networks belong to a url")
        return self

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("must be an http:// or https:// URL with a host")
        if "@" in parts.netloc:
            raise ValueError("must not hold a user name or password; use token")
        return url


McpServerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=24)]


class McpSettings(Section):
    """`[mcp]`. `definitions` is a file of the accepted definitions, so that a change can be shown.

    Empty: beside the SQLite file; with PostgreSQL only the new definition is shown.
    """

    definitions: str = ""
    servers: dict[McpServerName, McpServerSettings] = Field(default_factory=dict)
