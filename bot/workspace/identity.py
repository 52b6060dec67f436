"""The app as the workspace knows it: its ids, tokens, scopes and subscriptions."""

from dataclasses import dataclass, field

# What the product asks for in its manifest, optional scopes included.
DEFAULT_SCOPES = frozenset(
    {
        "app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write",
        "commands", "groups:history", "groups:read", "im:history", "im:read", "reactions:write",
        "usergroups:read", "users:read",
    }
)  # fmt: skip

DEFAULT_SUBSCRIPTIONS = frozenset(
    {"app_home_opened", "app_mention", "message.channels", "message.groups", "message.im"}
)


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """One installed app in one workspace. The secrets open nothing but this workspace."""

    team_id: str = "T0KORTEX01"
    team_name: str = "Kortex Local"
    app_id: str = "A0KORTEX01"
    bot_id: str = "B0KORTEX01"
    bot_user_id: str = "U0KORTEX01"
    bot_name: str = "kortex"
    bot_token: str = field(default="xoxb-local-workspace", repr=False)
    app_token: str = field(default="xapp-1-A0KORTEX01-local-workspace", repr=False)
    signing_secret: str = field(default="local-workspace-signing-secret", repr=False)
    scopes: frozenset[str] = DEFAULT_SCOPES
    subscriptions: frozenset[str] = DEFAULT_SUBSCRIPTIONS
    commands: frozenset[str] = frozenset({"/kortex"})
