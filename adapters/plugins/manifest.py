"""What a plugin's manifest may say. Everything that is not declared here is refused."""

import re
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from adapters.plugins.yaml_source import YamlSource, read_yaml

PREFIX: Final = "plugin__"
CEILING_S: Final = 300.0  # what no configuration raises a plugin's timeout above
_HOLE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_DURATION: Final = re.compile(r"(\d{1,6})(ms|s|m)")
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
# Headers that say how a request is framed or where it goes; RFC 9110 section 7.6.1 and 7.2.
_NOT_OURS: Final = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "te", "trailer",
     "upgrade", "proxy-authorization", "proxy-connection", "keep-alive", "expect", "cookie",
     "accept-encoding"}
)  # fmt: skip
Network: TypeAlias = IPv4Network | IPv6Network
# Wider than this is no network that anybody runs, but a way around the check.
_WIDEST_PREFIX: Final = 8

Scalar: TypeAlias = str | int | float | bool


def _seconds(value: object) -> object:
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError('write a duration such as "500ms", "10s" or "2m"')
    return timedelta(seconds=int(match[1]) * _UNIT_S[match[2]])


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Parameter(_Part):
    """An argument of the tool. One with a default, or `required: false`, may be left out."""

    type: Literal["string", "integer", "number", "boolean"]
    description: str = Field(default="", max_length=500)
    required: bool = True
    default: Scalar | None = None
    example: Scalar | None = None
    enum: tuple[str, ...] = Field(default=(), max_length=50)
    minimum: int | float | None = None
    maximum: int | float | None = None
    min_length: int = Field(default=0, ge=0, alias="minLength")
    max_length: int = Field(default=2000, ge=1, le=20_000, alias="maxLength")


class Endpoint(_Part):
    """Where the plugin reads. `{name}` in path or query is a parameter; the host is fixed."""

    method: Literal["GET", "POST"] = "GET"
    url: str = Field(max_length=2000)
    read_only: bool = False
    networks: tuple[Network, ...] = ()

    @field_validator("url")
    @classmethod
    def _fixed_host(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an http:// or https:// URL with a host")
        if "@" in parts.netloc:
            raise ValueError("must not hold a user name or password; use auth")
        if "{" in parts.netloc or "#" in url or not url.isascii() or not url.isprintable():
            raise ValueError("only path and query may have {parameters}; no fragment, plain ASCII")
        _ = parts.port  # raises ValueError for one that is none
        if "{" in _HOLE.sub("", url) or "}" in _HOLE.sub("", url):
            raise ValueError("a {parameter} is a name in braces")
        return url

    @field_validator("networks")
    @classmethod
    def _narrow(cls, networks: tuple[Network, ...]) -> tuple[Network, ...]:
        if any(each.prefixlen < _WIDEST_PREFIX for each in networks):
            raise ValueError(f"wider than /{_WIDEST_PREFIX}; name the networks that are meant")
        return networks

    @model_validator(mode="after")
    def _reads(self) -> "Endpoint":
        if self.method == "POST" and not self.read_only:
            raise ValueError(
                "a plugin only reads: with method POST, say `read_only: true` if it changes nothing"
            )
        return self

    @property
    def holes(self) -> frozenset[str]:
        """Names of the parameters that the URL places."""
        return frozenset(_HOLE.findall(self.url))


class BearerAuth(_Part):
    """`Authorization: Bearer`, from the environment."""

    type: Literal["bearer"]
    token: str

    @field_validator("token")
    @classmethod
    def _referred(cls, text: str) -> str:
        return from_environment(text)


class HeaderAuth(_Part):
    """A header of its own name, from the environment."""

    type: Literal["header"]
    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")
    value: str

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name.lower() in _NOT_OURS:
            raise ValueError(f"{name} cannot be set by a plugin")
        return name

    @field_validator("value")
    @classmethod
    def _referred(cls, text: str) -> str:
        return from_environment(text)


def from_environment(text: str) -> str:
    """Raises ValueError for a credential that is written into the file."""
    if not _REFERENCE.search(text):
        raise ValueError("must come from the environment, as ${NAME}")
    return text


class Manifest(_Part):
    """One plugin.

    `products` are the parameters that hold a product's name: none for a plugin that reads nothing
    of any product; left out, those that are called so.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=64 - len(PREFIX))
    description: str = Field(min_length=1, max_length=1000)
    parameters: dict[str, Parameter] = Field(default_factory=dict, max_length=20)
    endpoint: Endpoint
    auth: Annotated[BearerAuth | HeaderAuth, Field(discriminator="type")] | None = None
    allowed_sessions: tuple[str, ...] = Field(min_length=1)
    timeout: Annotated[timedelta, BeforeValidator(_seconds)] = timedelta(seconds=10)
    fields: tuple[str, ...] = ()
    products: tuple[str, ...] | None = None

    @field_validator("timeout")
    @classmethod
    def _within_ceiling(cls, timeout: timedelta) -> timedelta:
        if not 0 < timeout.total_seconds() <= CEILING_S:
            raise ValueError(f"must be more than 0 and at most {CEILING_S:.0f}s")
        return timeout


@dataclass(frozen=True, slots=True)
class ReadManifest:
    """A valid manifest, and where it was read for what is found out later."""

    manifest: Manifest
    source: YamlSource

    def credentials(self, env: dict[str, str]) -> dict[str, str]:
        """The header to send, filled in. Raises ManifestInvalid for a variable that is not set."""
        match self.manifest.auth:
            case None:
                return {}
            case BearerAuth(token=token):
                return {"Authorization": f"Bearer {self._filled(token, env, 'token')}"}
            case HeaderAuth(name=name, value=value):
                return {name: self._filled(value, env, "value")}

    def secrets(self, env: dict[str, str]) -> frozenset[str]:
        """Every value of the environment that the manifest refers to."""
        text = " ".join(
            value
            for value in (getattr(self.manifest.auth, key, "") for key in ("token", "value"))
            if isinstance(value, str)
        )
        found = (env.get(name, "").strip() for name in _REFERENCE.findall(text))
        return frozenset(value for value in found if value)

    def _filled(self, text: str, env: dict[str, str], key: str) -> str:
        missing = [name for name in _REFERENCE.findall(text) if not env.get(name, "").strip()]
        if missing:
            raise self.source.invalid(f"{missing[0]} is not set in the environment", "auth", key)
        filled = _REFERENCE.sub(lambda match: env[match[1]].strip(), text)
        if not filled.isascii() or not filled.isprintable():
            raise self.source.invalid("its value cannot be sent in a header", "auth", key)
        return filled


def read_manifest(path: Path) -> ReadManifest:
    """Reads one file. Raises ManifestInvalid with its line."""
    return checked(read_yaml(path))


def checked(source: YamlSource) -> ReadManifest:
    """Raises ManifestInvalid for the first thing that is wrong."""
    try:
        manifest = Manifest.model_validate(source.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        what = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        if first["type"] == "missing":
            what = f"{first['loc'][-1]} is missing"
        raise source.invalid(what.removeprefix("Value error, "), *first["loc"]) from None
    unknown = manifest.endpoint.holes - set(manifest.parameters)
    if unknown:
        raise source.invalid(f"no parameter is called {min(unknown)}", "endpoint", "url")
    path = urlsplit(manifest.endpoint.url).path
    for name in sorted(_HOLE.findall(path)):
        parameter = manifest.parameters[name]
        if not parameter.required and parameter.default is None:
            raise source.invalid(
                "is part of the path, so it cannot be left out", "parameters", name
            )
    return ReadManifest(manifest, source)
