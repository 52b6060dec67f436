"""The app as the workspace knows it: its ids, tokens, scopes and subscriptions."""

import secrets
from dataclasses import dataclass, field

# What the product asks for in its manifest, optional scopes included.
DEFAULT_SCOPES = frozenset(
    {
        "app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write",
        "commands", "groups:history", "groups:read", "im:history", "im:read", "reactions:write",
        "usergroups:read", "users:read", "users:read.email",
    }
)  # fmt: skip

DEFAULT_SUBSCRIPTIONS = frozenset(
    {"app_home_opened", "app_mention", "message.channels", "message.groups", "message.im"}
)


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
