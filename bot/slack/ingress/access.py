"""What Slack is reached with, and why a start ends before it serves; nothing of Slack's is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class SlackAccess:
    """The `[slack]` values that the check needs, secrets revealed."""

    mode: Literal["socket", "http"]
    api_base_url: str
    bot_token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    signing_secret: str = field(default="", repr=False)
    trusted_teams: frozenset[str] = frozenset()
    why_empty: Mapping[str, str] = field(default_factory=dict)  # by setting: what its value lacks


class StartupError(Exception):
    """Slack cannot work as configured. `key` is the setting; the text says what to do.

    `what` is the text without `mend`, which may be empty.
    """

    def __init__(self, key: str, message: str, mend: str = "") -> None:
        self.what = f"{key}: {message}"
        super().__init__(f"{self.what}. {mend}" if mend else self.what)
        self.key = key
        self.mend = mend
