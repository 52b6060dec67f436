"""A plugin's arguments put into its URL, query or body, so that they can point nowhere else."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from adapters.plugins.manifest import Endpoint, Scalar
from tools.errors import InvalidArguments

_HOLE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SEPARATORS: Final = re.compile(r"[/\\]")


def placed(
    endpoint: Endpoint, arguments: Mapping[str, Scalar]
) -> tuple[str, dict[str, Scalar] | None]:
    """The URL and the JSON body; what the URL does not place goes to the query, or a POST's body.

    Raises InvalidArguments for a value that would leave its place in the path.
    """
    parts = urlsplit(endpoint.url)
    rest = {name: value for name, value in arguments.items() if name not in endpoint.holes}
    query = _HOLE.sub(lambda hole: _encoded(arguments.get(hole[1], "")), parts.query)
    if endpoint.method == "GET" and rest:
        more = urlencode({name: _text(value) for name, value in rest.items()}, quote_via=quote)
        query = f"{query}&{more}" if query else more
    path = _HOLE.sub(lambda hole: _segment(hole[1], arguments), parts.path)
    if any(_climbs(segment) for segment in path.split("/")):
        raise InvalidArguments("arguments: they would leave the path of this tool")
    url = urlunsplit((parts.scheme, parts.netloc, path, query, ""))
    return url, (rest if endpoint.method == "POST" else None)


def _segment(name: str, arguments: Mapping[str, Scalar]) -> str:
    value = _encoded(arguments.get(name, ""))
    if not value:
        raise InvalidArguments(f"{name}: may not be empty")
    return value


def _climbs(segment: str) -> bool:
    """Also for a server that decodes before it routes."""
    return any(step in (".", "..") for step in _SEPARATORS.split(unquote(segment)))


def _encoded(value: Scalar) -> str:
    try:
        return quote(_text(value), safe="")
    except UnicodeEncodeError as error:
        raise InvalidArguments("arguments: half a character cannot be in a URL") from error


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
