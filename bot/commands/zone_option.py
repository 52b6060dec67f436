"""The time zone that a question on the command line is read in."""

import os
from pathlib import Path
from typing import Final

from bot.settings.environment import environment
from bot.settings.reading import ConfigurationError
from tools.time_zones import is_zone

_LOCALTIME: Final = Path("/etc/localtime")  # a link into the zones' files on Linux and macOS


def zone_option(text: str) -> str:
    """As asked for, else this machine's; UTC where that cannot be told. Raises ConfigurationError."""
    if not text:
        return _of_this_machine()
    if not is_zone(text):
        raise ConfigurationError(
            f'--time-zone {text}: write a name such as "Europe/Berlin" or "UTC"'
        )
    return text


def _of_this_machine() -> str:
    linked = os.path.realpath(_LOCALTIME).partition("zoneinfo/")[2]
    named = (environment().get("TZ", "").removeprefix(":"), linked.removeprefix("posix/"))
    return next((name for name in named if is_zone(name)), "UTC")
