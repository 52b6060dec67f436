"""What `app-manifest.yml` must grant: the events listened to, the methods called, the commands.

The file is written by hand for people to read; tests hold it, this table and the code together.
Scopes: https://docs.slack.dev/reference/methods and https://docs.slack.dev/reference/events.
"""

from collections.abc import Mapping

from bot.slack.listeners.commands import COMMAND

# Event → the scope its delivery needs ("" for none).
EVENTS: Mapping[str, str] = {
    "agent_session_stopped": "assistant:write",
    "app_home_opened": "",
    "app_mention": "app_mentions:read",
    "app_uninstalled": "",
    "channel_rename": "channels:read",
    "channel_unarchive": "channels:read",
    "group_rename": "groups:read",
    "group_unarchive": "groups:read",
    "member_joined_channel": "channels:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "subteam_members_changed": "usergroups:read",
    "tokens_revoked": "",
}

_HISTORY = ("channels:history", "groups:history", "im:history")

# Method → the scopes of every kind of channel it is called for.
METHODS: Mapping[str, tuple[str, ...]] = {
    "apps.connections.open": (),  # the app-level token's connections:write
    "apps.uninstall": (),  # with the app's own id and secret
    "auth.test": (),
    "bots.info": ("users:read",),
    "chat.delete": ("chat:write",),
    "chat.getPermalink": (),
    "chat.postEphemeral": ("chat:write",),
    "chat.postMessage": ("chat:write",),
    "agents.sessions.setStatus": ("assistant:write",),
    "assistant.threads.setStatus": ("chat:write",),
    "assistant.threads.setTitle": ("assistant:write",),
    "assistant.threads.setSuggestedPrompts": ("assistant:write",),
    "chat.startStream": ("chat:write",),
    "chat.appendStream": ("chat:write",),
    "chat.stopStream": ("chat:write",),
    "chat.update": ("chat:write",),
    "conversations.history": _HISTORY,
    "conversations.info": ("channels:read", "groups:read", "mpim:read"),  # im: no name
    "conversations.members": ("channels:read", "groups:read", "mpim:read"),
    "conversations.replies": _HISTORY,
    "files.completeUploadExternal": ("files:write",),
    "files.getUploadURLExternal": ("files:write",),
    "files.info": ("files:read",),
    "usergroups.list": ("usergroups:read",),
    "usergroups.users.list": ("usergroups:read",),
    "users.info": ("users:read",),
    "users.lookupByEmail": ("users:read.email",),
    "views.open": (),
    "views.push": (),
    "views.publish": (),
}

COMMANDS = (COMMAND,)


def listened(event: str) -> str:
    """The event type that a listener sees for a subscription: `message.im` → `message`."""
    return event.partition(".")[0]


def scopes() -> frozenset[str]:
    """Exactly the bot scopes that the product uses."""
    of_methods = {scope for needed in METHODS.values() for scope in needed}
    of_events = {scope for scope in EVENTS.values() if scope}
    return frozenset(of_methods | of_events | {"commands"})
