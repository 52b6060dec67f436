"""The configuration of one provider, and its address."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx
from pydantic import JsonValue

from adapters.llm.model_table import ModelOverride

_VERSIONED: Final = re.compile(r"/v\d+(?:alpha|beta)?$")


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One `[llm.providers.NAME]` table; empty strings mean the provider's own default.

    `max_tokens` bounds the output of every answer. `timeout_s` is the longest silence within an
    answer. `models` is the operator's data on models. `allowed_hosts` narrows where requests may go
    (None: only to the host of `base_url`). `extra` holds provider-specific keys, which each
    provider documents.
    """

    name: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    model: str = ""
    fast_model: str = ""
    max_tokens: int = 4096
    timeout_s: float = 60.0
    extra: Mapping[str, JsonValue] = field(default_factory=dict, repr=False)
    models: Mapping[str, ModelOverride] = field(default_factory=dict)
    allowed_hosts: frozenset[str] | None = None


def unusable(config: ProviderConfig, *secrets: str) -> str | None:
    """Why nothing can be sent with this configuration, without any of its values; or None.

    `secrets` go into headers; a character that headers forbid would fail every request.
    """
    if not all(each.isascii() and each.isprintable() for each in secrets):
        return "its key holds a line break or another character that no header may hold"
    address = config.base_url
    try:
        url = httpx.URL(address if "://" in address else f"https://{address}")
        named, _ = url.userinfo, url.host  # a host that only looks like punycode raises here
    except (httpx.InvalidURL, ValueError, UnicodeError):
        # Repeat the address only if it cannot hold a password.
        return "base_url is not an http(s) address" + ("" if "@" in address else f": {address!r}")
    if named:
        return "base_url holds a user name or a password; write the key into api_key"
    return None


def endpoint(base_url: str, version: str, resource: str) -> httpx.URL | None:
    """The full URL of a resource, for any usual form of base URL; None if it is not a URL of a
    host.

    `https://host`, `https://host/v1/`, `https://host/v1/<resource>` and a gateway's path all work.
    The default scheme is https. A query (Azure's `api-version`) is kept.
    """
    text = base_url.strip()
    if "://" not in text:
        text = f"https://{text}"
    try:
        url = httpx.URL(text)
        host = url.host
    except (httpx.InvalidURL, ValueError, UnicodeError):
        return None
    if url.scheme not in {"http", "https"} or not host:
        return None
    # Percent-encoded as it is sent, so that it is ASCII.
    path = url.raw_path.partition(b"?")[0].decode("ascii").rstrip("/").removesuffix(f"/{resource}")
    if version and not _VERSIONED.search(path):
        path = f"{path}/{version}"
    query = f"?{url.query.decode('ascii')}" if url.query else ""
    return url.copy_with(raw_path=f"{path}/{resource}{query}".encode("ascii"))
