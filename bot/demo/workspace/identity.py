"""The app as the workspace knows it, and names and times as Slack makes them.

Its ids, tokens, scopes and subscriptions; opaque ids, and message ids that look like times.
"""

import secrets
import string
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.demo.workspace.json_access import CONSTANTS, texts_at

_ALPHABET = string.ascii_uppercase + string.digits


# What the product asks for in its manifest, optional scopes included.
_MANIFEST = CONSTANTS["manifest"]
DEFAULT_SCOPES = frozenset(texts_at(_MANIFEST, "scopes"))
DEFAULT_SUBSCRIPTIONS = frozenset(texts_at(_MANIFEST, "subscriptions"))


def opaque(prefix: str, length: int = 10) -> str:
    """A fresh id such as `Ev0AB12CD34`."""
    return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(length))


class Timestamps:
    """Unique, increasing `1700000000.000100` strings over one workspace."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._last_us = 0

    def next(self) -> str:
        """The next one; never repeats even within one microsecond."""
        self._last_us = max(self._last_us + 1, int(self._now() * 1_000_000))
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06d}"


def _secret(prefix: str = "") -> str:
    return prefix + secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """One installed app in one workspace. The secrets are new each time: no other page knows them."""

    team_id: str = "T0KORTEX01"
    team_name: str = "Kortex Local"
    app_id: str = "A0KORTEX01"
    bot_id: str = "B0KORTEX01"
    bot_user_id: str = "U0KORTEX01"
    bot_name: str = "kortex"
    bot_token: str = field(default_factory=lambda: _secret("xoxb-"), repr=False)
    app_token: str = field(default_factory=lambda: _secret("xapp-1-"), repr=False)
    signing_secret: str = field(default_factory=_secret, repr=False)
    scopes: frozenset[str] = DEFAULT_SCOPES
    subscriptions: frozenset[str] = DEFAULT_SUBSCRIPTIONS
    commands: frozenset[str] = frozenset({"/kortex"})
