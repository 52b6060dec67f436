"""Where `kortex chat` finds the service and the token that says who asks."""

import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tools.output import lines_of

USUAL_URL: Final = "http://127.0.0.1:3000"
URL_VARIABLE: Final = "KORTEX_URL"
TOKEN_VARIABLE: Final = "KORTEX_TOKEN"  # noqa: S105 - a name
USUAL_FILE: Final = "~/.config/kortex/token"
_MOST_CHARS: Final = 16_384  # a token of an identity provider with many groups
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Unusable(Exception):
    """The address or the token cannot be used; the message says what to do."""


def where(
    url: str | None, config: Path, env: Mapping[str, str], tell: Callable[[str], None]
) -> str:
    """The service's address: the option, else the variable, else `[http]` of the file, else the default.

    Calls `tell` with a line where the file gives no address. Raises Unusable.
    """
    if url is not None:
        return address(url)
    if told := env.get(URL_VARIABLE, "").strip():
        return address(told, URL_VARIABLE)
    if not config.is_file():
        return USUAL_URL
    from bot.settings.http import own_address  # only where there is a file: they take a moment
    from bot.settings.reading import ConfigurationError, load

    try:
        http = load(config, env).http
    except ConfigurationError as error:
        first, *_ = lines_of(str(error))
        tell(f"{first}; asking {USUAL_URL}")
        return USUAL_URL
    if not http.port:
        tell(f"{config}: [http] port = 0 changes at each start; asking {USUAL_URL}")
        return USUAL_URL
    return address(own_address(http), f"[http] of {config}; name another with --url")


def address(url: str, source: str = "--url") -> str:
    """Raises Unusable, naming the `source`: a token goes over the network in TLS only."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Unusable(f"{source}: not an address: {error}") from error
    if not host or parts.scheme not in {"http", "https"} or parts.username is not None:
        raise Unusable(f"{source}: write the service's address, such as {USUAL_URL}")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise Unusable(f"{source}: use https; over http your token could be read on the network")
    return url.rstrip("/")


def token(file: Path | None, env: Mapping[str, str]) -> str:
    """From the file that was named, the variable, or the usual file. Raises Unusable."""
    if file is None and (told := env.get(TOKEN_VARIABLE, "").strip()):
        return _checked(told, TOKEN_VARIABLE)
    path = file or Path(USUAL_FILE).expanduser()
    try:
        mode = path.stat().st_mode
        told = path.read_text("utf-8", "replace").strip()
    except OSError as error:
        if file is None:
            raise Unusable(
                f"no token: set {TOKEN_VARIABLE}, or write it into {USUAL_FILE} "
                "(an admin makes one: kortex token create NAME)"
            ) from error
        raise Unusable(f"{path}: cannot be read ({error.strerror})") from error
    if stat.S_IMODE(mode) & 0o077:
        raise Unusable(f"{path}: other users can read it; chmod 600 {path}")
    return _checked(told, str(path))


def _checked(told: str, where: str) -> str:
    if not told or len(told) > _MOST_CHARS or not (told.isascii() and told.isprintable()):
        raise Unusable(f"{where}: holds no token")
    return told
