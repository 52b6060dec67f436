"""A plugin's arguments put into its URL, query or body, so that they can point nowhere else."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from pydantic import JsonValue

from adapters.plugins.manifest import Endpoint, hole
from tools.errors import InvalidArguments

_HOLE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SEPARATORS: Final = re.compile(r"[/\\]")


def placed(endpoint: Endpoint, arguments: Mapping[str, JsonValue]) -> tuple[str, JsonValue]:
    """The URL and the JSON body; what neither places goes to the query, or to a POST's body.

    Raises InvalidArguments for a value that would leave its place in the path.
    """
    parts = urlsplit(endpoint.url)
    known = endpoint.holes | endpoint.body_holes
    rest = {name: value for name, value in arguments.items() if name not in known}
    query = _HOLE.sub(lambda hole: _encoded(arguments.get(hole[1], "")), parts.query)
    if endpoint.method == "GET" and rest:
        more = urlencode({name: _text(value) for name, value in rest.items()}, quote_via=quote)
        query = f"{query}&{more}" if query else more
    path = _HOLE.sub(lambda hole: _segment(hole[1], arguments), parts.path)
    if any(_climbs(segment) for segment in path.split("/")):
        raise InvalidArguments("arguments: they would leave the path of this tool")
    url = urlunsplit((parts.scheme, parts.netloc, path, query, ""))
    return url, (_body(endpoint.body, arguments, rest) if endpoint.method == "POST" else None)


class _Left(Enum):
    """An argument that was not given."""

    OUT = "out"


def _body(
    template: JsonValue, arguments: Mapping[str, JsonValue], rest: Mapping[str, JsonValue]
) -> JsonValue:
    """The declared body filled in, with what nothing places beside its own keys."""
    if template is None:
        return dict(rest)
    made = _filled(template, arguments)
    if made is _Left.OUT:
        return dict(rest)
    return {**rest, **made} if isinstance(made, dict) else made


def _filled(template: JsonValue, arguments: Mapping[str, JsonValue]) -> JsonValue | _Left:
    if name := hole(template):
        return arguments.get(name, _Left.OUT)
    if isinstance(template, dict):
        made = {key: _filled(value, arguments) for key, value in template.items()}
        return {key: value for key, value in made.items() if not isinstance(value, _Left)}
    if isinstance(template, list):
        each = [_filled(value, arguments) for value in template]
        return [value for value in each if not isinstance(value, _Left)]
    return template


def _segment(name: str, arguments: Mapping[str, JsonValue]) -> str:
    value = _encoded(arguments.get(name, ""))
    if not value:
        raise InvalidArguments(f"{name}: may not be empty")
    return value


def _climbs(segment: str) -> bool:
    """Also for a server that decodes before it routes."""
    return any(step in (".", "..") for step in _SEPARATORS.split(unquote(segment)))


def _encoded(value: JsonValue) -> str:
    try:
        return quote(_text(value), safe="")
    except UnicodeEncodeError as error:
        raise InvalidArguments("arguments: half a character cannot be in a URL") from error


def _text(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
