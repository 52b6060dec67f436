"""URLs with holes, `{product}` and `{params.NAME}`, that no filling can make point elsewhere."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from pydantic import JsonValue

HOLE: Final = "{product}"
_PARAM: Final = re.compile(r"\{params\.([A-Za-z0-9_-]{1,64})\}")


class BadTemplate(ValueError):
    """The template or what would fill it is not usable; the message says why."""


def check_template(template: str, *, params: bool = False) -> None:
    """Raises BadTemplate unless it is http(s) with a fixed host and no holes but the known ones.

    `{params.NAME}` is one of them with `params`.
    """
    parts = urlsplit(template)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadTemplate("must be an http:// or https:// URL with a host")
    if "{" in parts.netloc or "}" in parts.netloc:
        raise BadTemplate("{product} may not be part of the host")
    if parts.username or parts.password:
        raise BadTemplate("must not contain a user name or password; use `token`")
    if parts.fragment or "#" in template:
        raise BadTemplate("must not contain a fragment (#)")
    rest = template.replace(HOLE, "")
    if params:
        rest = _PARAM.sub("", rest)
    if "{" in rest or "}" in rest:
        known = "{product} and {params.NAME}" if params else "{product}"
        raise BadTemplate(f"only {known} can be filled in")


def fill(template: str, product: str, params: Mapping[str, JsonValue] | None = None) -> str:
    """The URL for one product, percent-encoded so that it stays one path segment or value.

    Raises BadTemplate for a template that does not pass `check_template`, and for a filling that
    is empty, or that would be a relative path step (RFC 3986 section 3.3: `.` and `..`).
    """
    check_template(template, params=params is not None)

    def value(hole: re.Match[str]) -> str:
        return _segment((params or {}).get(hole[1]), f"parameter {hole[1]}")

    filled = _PARAM.sub(value, template) if params is not None else template
    return filled.replace(HOLE, _segment(product, "product")) if HOLE in filled else filled


def _segment(value: JsonValue, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value in ("", ".", ".."):
        raise BadTemplate(f"{value!r} cannot be a {what} here")
    try:
        return quote(str(value), safe="")
    except UnicodeEncodeError as error:
        raise BadTemplate(f"a {what} with half a character cannot be in a URL") from error
