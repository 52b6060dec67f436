"""URLs with one hole, `{product}`, that cannot be made to point elsewhere by what fills it."""

from typing import Final
from urllib.parse import quote, urlsplit

HOLE: Final = "{product}"


class BadTemplate(ValueError):
    """The template or what would fill it is not usable; the message says why."""


def check_template(template: str) -> None:
    """Raises BadTemplate unless it is http(s) with a fixed host and no hole but `{product}`."""
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
    if "{" in rest or "}" in rest:
        raise BadTemplate("only {product} can be filled in")


def fill(template: str, product: str) -> str:
    """The URL for one product, percent-encoded so that it stays one path segment or value.

    Raises BadTemplate for a template that does not pass `check_template`, and for a product that
    is empty, or that would be a relative path step (RFC 3986 section 3.3: `.` and `..`).
    """
    check_template(template)
    if HOLE in template and product in ("", ".", ".."):
        raise BadTemplate(f"{product!r} cannot be a product here")
    try:
        return template.replace(HOLE, quote(product, safe=""))
    except UnicodeEncodeError as error:
        raise BadTemplate("a product with half a character cannot be in a URL") from error
