"""Which arguments each Web API method takes, and reading them from a request strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import orjson
from pydantic import JsonValue

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject


class Kind(Enum):
    """How a value is written on the wire."""

    TEXT = "a string"
    FLAG = "a boolean"
    NUMBER = "a number"
    JSON = "JSON"  # an object or list; in a form, its text


@dataclass(frozen=True, slots=True)
class Signature:
    """One method: its arguments, tier, scope and whether the app-level token calls it.

    `tier` None is the posting rate. Methods that only read take no JSON body
    (https://docs.slack.dev/apis/web-api/: "accepts application/x-www-form-urlencoded").
    """

    required: Mapping[str, Kind]
    optional: Mapping[str, Kind]
    tier: int | None
    scope: str = ""
    app_level: bool = False
    takes_json: bool = True


# The SDK's per-request client adds `team_id` to every call; Slack lets it pass everywhere.
ALWAYS_ALLOWED = frozenset({"token", "team_id"})

_TEXT, _FLAG, _NUMBER, _JSON = Kind.TEXT, Kind.FLAG, Kind.NUMBER, Kind.JSON
_CONTENT = {
    "text": _TEXT, "blocks": _JSON, "attachments": _JSON, "markdown_text": _TEXT, "parse": _TEXT,
    "link_names": _FLAG, "as_user": _FLAG,
}  # fmt: skip
_AUTHOR = {"username": _TEXT, "icon_emoji": _TEXT, "icon_url": _TEXT}
_STREAMED = {"markdown_text": _TEXT, "chunks": _JSON}
_PAGED = {"cursor": _TEXT, "limit": _NUMBER}
_RANGE = {
    **_PAGED, "oldest": _TEXT, "latest": _TEXT, "inclusive": _FLAG, "include_all_metadata": _FLAG,
}  # fmt: skip

# Arguments, tiers and scopes: https://docs.slack.dev/reference/methods
SIGNATURES: Mapping[str, Signature] = {
    "apps.connections.open": Signature({}, {}, tier=3, app_level=True),
    "apps.uninstall": Signature({"client_id": _TEXT, "client_secret": _TEXT}, {}, tier=1),
    "auth.test": Signature({}, {}, tier=4),
    "chat.delete": Signature(
        {"channel": _TEXT, "ts": _TEXT}, {"as_user": _FLAG}, tier=3, scope="chat:write"
    ),
    "chat.getPermalink": Signature(
        {"channel": _TEXT, "message_ts": _TEXT}, {}, tier=4, takes_json=False
    ),
    "chat.postEphemeral": Signature(
        {"channel": _TEXT, "user": _TEXT},
        {**_CONTENT, **_AUTHOR, "thread_ts": _TEXT},
        tier=4,
        scope="chat:write",
    ),
    "chat.postMessage": Signature(
        {"channel": _TEXT},
        {
            **_CONTENT, **_AUTHOR, "thread_ts": _TEXT, "metadata": _JSON, "mrkdwn": _FLAG,
            "reply_broadcast": _FLAG, "unfurl_links": _FLAG, "unfurl_media": _FLAG,
        },
        tier=None,
        scope="chat:write",
    ),
    "agents.sessions.setStatus": Signature(
        {"channel_id": _TEXT, "status": _TEXT},
        {**_AUTHOR, "thread_ts": _TEXT, "title": _TEXT, "initiator_user_id": _TEXT},
        tier=3,  # not published; taken for that of its neighbours that change something
        scope="assistant:write",
    ),
    "agents.sessions.rename": Signature(
        {"channel_id": _TEXT, "title": _TEXT},
        {"thread_ts": _TEXT},
        tier=3,
        scope="assistant:write",
    ),
    "assistant.threads.setStatus": Signature(
        {"channel_id": _TEXT, "thread_ts": _TEXT},
        {**_AUTHOR, "status": _TEXT, "loading_messages": _JSON},
        tier=None,
        scope="chat:write",
    ),
    "assistant.threads.setTitle": Signature(
        {"channel_id": _TEXT, "thread_ts": _TEXT, "title": _TEXT}, {}, tier=4,
        scope="assistant:write",
    ),
    "assistant.threads.setSuggestedPrompts": Signature(
        {"channel_id": _TEXT, "prompts": _JSON},
        {"thread_ts": _TEXT, "title": _TEXT},
        tier=4,
        scope="assistant:write",
    ),
    "chat.startStream": Signature(
        {"channel": _TEXT, "thread_ts": _TEXT},
        {
            **_STREAMED, **_AUTHOR, "recipient_user_id": _TEXT, "recipient_team_id": _TEXT,
            "task_display_mode": _TEXT,
        },
        tier=2,
        scope="chat:write",
    ),
    "chat.appendStream": Signature(
        {"channel": _TEXT, "ts": _TEXT}, _STREAMED, tier=4, scope="chat:write"
    ),
    "chat.stopStream": Signature(
        {"channel": _TEXT, "ts": _TEXT},
        {**_STREAMED, "blocks": _JSON, "metadata": _JSON, "session_status": _TEXT},
        tier=2,
        scope="chat:write",
    ),
    "chat.update": Signature(
        {"channel": _TEXT, "ts": _TEXT},
        {
            **_CONTENT, "metadata": _JSON, "reply_broadcast": _FLAG, "file_ids": _JSON,
            "unfurled_attachments": _JSON,
        },
        tier=3,
        scope="chat:write",
    ),
    "conversations.history": Signature(
        {"channel": _TEXT}, _RANGE, tier=3, scope="channels:history", takes_json=False
    ),
    "conversations.info": Signature(
        {"channel": _TEXT},
        {"include_locale": _FLAG, "include_num_members": _FLAG},
        tier=3,
        scope="channels:read",
        takes_json=False,
    ),
    "conversations.members": Signature(
        {"channel": _TEXT}, _PAGED, tier=4, scope="channels:read", takes_json=False
    ),
    "conversations.replies": Signature(
        {"channel": _TEXT, "ts": _TEXT},
        _RANGE,
        tier=3,
        scope="channels:history",
        takes_json=False,
    ),
    "files.completeUploadExternal": Signature(
        {"files": _JSON},
        {
            "blocks": _JSON, "channel_id": _TEXT, "channels": _TEXT, "initial_comment": _TEXT,
            "thread_ts": _TEXT,
        },
        tier=4,
        scope="files:write",
    ),
    "files.getUploadURLExternal": Signature(
        {"filename": _TEXT, "length": _NUMBER},
        {"alt_txt": _TEXT, "snippet_type": _TEXT},
        tier=4,
        scope="files:write",
        takes_json=False,
    ),
    "files.info": Signature(
        {"file": _TEXT},
        {**_PAGED, "count": _NUMBER, "page": _NUMBER},
        tier=4,
        scope="files:read",
        takes_json=False,
    ),
    "reactions.add": Signature(
        {"channel": _TEXT, "name": _TEXT, "timestamp": _TEXT}, {}, tier=3, scope="reactions:write"
    ),
    "usergroups.list": Signature(
        {},
        {"include_count": _FLAG, "include_disabled": _FLAG, "include_users": _FLAG},
        tier=2,
        scope="usergroups:read",
        takes_json=False,
    ),
    "usergroups.users.list": Signature(
        {"usergroup": _TEXT},
        {"include_disabled": _FLAG},
        tier=2,
        scope="usergroups:read",
        takes_json=False,
    ),
    "users.info": Signature(
        {"user": _TEXT}, {"include_locale": _FLAG}, tier=4, scope="users:read", takes_json=False
    ),
    "users.lookupByEmail": Signature({"email": _TEXT}, {}, tier=3, scope="users:read.email"),
    "views.open": Signature(
        {"view": _JSON}, {"trigger_id": _TEXT, "interactivity_pointer": _TEXT}, tier=4
    ),
    "views.push": Signature(
        {"view": _JSON}, {"trigger_id": _TEXT, "interactivity_pointer": _TEXT}, tier=4
    ),
    "views.publish": Signature({"user_id": _TEXT, "view": _JSON}, {"hash": _TEXT}, tier=4),
    "views.update": Signature(
        {"view": _JSON}, {"view_id": _TEXT, "external_id": _TEXT, "hash": _TEXT}, tier=4
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arguments:
    """The read arguments of one call; absent ones read as None, empty or False."""

    values: Mapping[str, JsonValue]

    def given(self, name: str) -> bool:
        """Whether the caller sent it at all."""
        return name in self.values

    def text(self, name: str) -> str:
        """Read the argument as text."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool:
        """Read the argument as true or false."""
        return self.values.get(name) is True

    def number(self, name: str, default: int) -> int:
        """A whole number."""
        value = self.values.get(name)
        return int(value) if isinstance(value, int | float) else default

    def json(self, name: str) -> JsonValue:
        """An object or list."""
        return self.values.get(name)


def read_arguments(signature: Signature, sent: JsonObject) -> Arguments:
    """Check names and kinds. Raises SlackRefused("invalid_arguments") naming every problem."""
    kinds = {**signature.required, **signature.optional}
    problems = [
        f"[ERROR] unknown argument: {name}"
        for name in sent
        if name not in kinds and name not in ALWAYS_ALLOWED
    ]
    problems += [
        f"[ERROR] missing required field: {name}"
        for name in signature.required
        if sent.get(name) in (None, "")
    ]
    values: dict[str, JsonValue] = {}
    for name, kind in kinds.items():
        if sent.get(name) is None:
            continue
        try:
            values[name] = _read(kind, sent[name])
        except ValueError:
            problems.append(f"[ERROR] must be {kind.value} [json-pointer:/{name}]")
    if problems:
        raise SlackRefused("invalid_arguments", problems)
    return Arguments(values)


_FLAGS: Mapping[str, bool] = {"1": True, "true": True, "0": False, "false": False, "": False}


def _read(kind: Kind, value: JsonValue) -> JsonValue:
    """Raises ValueError when the value is not of that kind."""
    match kind:
        case Kind.TEXT:
            if isinstance(value, str):
                return value
        case Kind.FLAG:
            if isinstance(value, bool):
                return value
            if str(value).lower() in _FLAGS:
                return _FLAGS[str(value).lower()]
        case Kind.NUMBER:
            if isinstance(value, bool):
                raise ValueError(value)
            if isinstance(value, int | str):
                return int(value)
        case Kind.JSON:
            return _read_json(value)
    raise ValueError(value)


def _read_json(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        value = orjson.loads(value)
    if not isinstance(value, dict | list):
        raise ValueError(value)
    return value
