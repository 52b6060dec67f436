"""What a plugin's manifest may say. Everything that is not declared here is refused."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from adapters.plugins.credentials import (
    Auth,
    BasicAuth,
    HeaderName,
    filled,
    headers_of,
    references,
)
from adapters.plugins.parameters import Parameter
from adapters.plugins.yaml_source import YamlSource, read_yaml

PREFIX: Final = "plugin__"
CEILING_S: Final = 300.0  # what no configuration raises a plugin's timeout above
_HOLE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_DURATION: Final = re.compile(r"(\d{1,6})(ms|s|m)")
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
Network: TypeAlias = IPv4Network | IPv6Network
# Wider than this is no network that anybody runs, but a way around the check.
_WIDEST_PREFIX: Final = 8


def _seconds(value: object) -> object:
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError('write a duration such as "500ms", "10s" or "2m"')
    return timedelta(seconds=int(match[1]) * _UNIT_S[match[2]])


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Endpoint(_Part):
    """The plugin's address. `{name}` in path or query is a parameter; the host is fixed.

    `body` is a POST's JSON: a text that is only `{name}` becomes that argument with its type, and
    is left out if the argument is.
    """

    method: Literal["GET", "POST"] = "GET"
    url: str = Field(max_length=2000)
    read_only: bool = False
    body: JsonValue = None
    headers: dict[HeaderName, str] = Field(default_factory=dict, max_length=10)
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
        _ = parts.port  # raises ValueError for an invalid port
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
                "a plugin only reads: with method POST, add `read_only: true` below `method` if it "
                "changes nothing"
            )
        return self

    @field_validator("headers")
    @classmethod
    def _plain(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if name.lower() == "authorization" or "${" in value:
                raise ValueError("a credential belongs into auth")
            if not value.isascii() or not value.isprintable():
                raise ValueError("a header's value is plain ASCII")
        return headers

    @model_validator(mode="after")
    def _has_a_body(self) -> "Endpoint":
        if self.body is not None and self.method != "POST":
            raise ValueError("only a POST has a body")
        return self

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(_HOLE.findall(self.url))

    @property
    def body_holes(self) -> frozenset[str]:
        return frozenset(holes_in(self.body))


def hole(value: object) -> str:
    """The parameter that a body's text names; "" for a literal."""
    found = _HOLE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else ""


def holes_in(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from holes_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from holes_in(each)
    elif name := hole(value):
        yield name


class Manifest(_Part):
    """One plugin.

    `products` are the parameters that hold a product's name: empty for a plugin without product
    data; by default, parameters with such names.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=64 - len(PREFIX))
    description: str = Field(min_length=1, max_length=1000)
    parameters: dict[str, Parameter] = Field(default_factory=dict, max_length=20)
    endpoint: Endpoint
    auth: Auth | None = None
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
    """A valid manifest and its source, for later errors."""

    manifest: Manifest
    source: YamlSource

    def headers(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """What to send, filled in. Raises ManifestInvalid for a variable that is not set."""
        plain = self.manifest.endpoint.headers
        auth = self.manifest.auth
        return {**plain, **(headers_of(auth, partial(self._filled, env)) if auth else {})}

    def secrets(self, env: Mapping[str, str]) -> frozenset[str]:
        """Every secret of the environment that the manifest refers to, and as basic auth sends it."""
        auth = self.manifest.auth
        if auth is None:
            return frozenset()
        found = {env.get(name, "").strip() for name in references(auth)}
        if isinstance(auth, BasicAuth):
            with suppress(KeyError):
                pair = f"{filled(auth.user, env)}:{filled(auth.password, env)}"
                found.add(b64encode(pair.encode()).decode())
        return frozenset(value for value in found if value)

    def _filled(self, env: Mapping[str, str], text: str, key: str) -> str:
        try:
            value = filled(text, env)
        except KeyError as error:
            name = error.args[0]
            why = f"{name} is not set in the environment of this process; it takes one at a start only"
            raise self.source.invalid(why, "auth", key) from None
        if not value.isascii() or not value.isprintable():
            raise self.source.invalid("its value cannot be sent in a header", "auth", key)
        return value


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
    unknown = manifest.endpoint.body_holes - set(manifest.parameters)
    if unknown:
        raise source.invalid(f"no parameter is called {min(unknown)}", "endpoint", "body")
    for name in sorted(manifest.endpoint.holes | _in_query(manifest)):
        if not manifest.parameters[name].is_scalar:
            raise source.invalid("an array or object cannot be in a URL", "parameters", name)
    path = urlsplit(manifest.endpoint.url).path
    for name in sorted(_HOLE.findall(path)):
        parameter = manifest.parameters[name]
        if not parameter.required and parameter.default is None:
            raise source.invalid(
                "is part of the path, so it cannot be left out", "parameters", name
            )
    return ReadManifest(manifest, source)


def _in_query(manifest: Manifest) -> frozenset[str]:
    """A GET's parameters are all in its URL."""
    return frozenset(manifest.parameters if manifest.endpoint.method == "GET" else ())
