"""Events API payloads: what happened, in the envelope that Slack puts around it."""

import time
import uuid
from collections.abc import Sequence

from pydantic import JsonValue

from bot.demo.workspace.identity import AppIdentity, opaque
from bot.demo.workspace.json_access import CONSTANTS, JsonObject
from bot.demo.workspace.people import Channel, User
from bot.demo.workspace.timeline import Message

SUBSCRIPTION_OF_KIND = {
    "channel": "message.channels",
    "group": "message.groups",
    "im": "message.im",
}


def message_posted(message: Message, channel: Channel) -> JsonObject:
    event = message.as_slack()
    return event | _where(message.ts, channel)


def app_mention(message: Message) -> JsonObject:
    """The same message as an app_mention: the same channel and ts under another event id."""
    said = message.as_slack()
    said.pop("subtype", None)
    return said | {"type": "app_mention", "channel": message.channel, "event_ts": message.ts}


def message_changed(before: Message, after: Message, channel: Channel, at: str) -> JsonObject:
    """An edit: no top-level user or text."""
    return _hidden("message_changed", before, channel, at) | {"message": after.as_slack()}


def message_deleted(before: Message, channel: Channel, at: str) -> JsonObject:
    return _hidden("message_deleted", before, channel, at) | {"deleted_ts": before.ts}


def _hidden(subtype: str, before: Message, channel: Channel, at: str) -> JsonObject:
    event: JsonObject = {
        "type": "message",
        "subtype": subtype,
        "previous_message": before.as_slack(),
        "hidden": True,
        "ts": at,
    }
    return event | _where(at, channel)


def home_opened(user: User, channel: str, tab: str, view: JsonObject | None, at: str) -> JsonObject:
    event: JsonObject = {
        "type": "app_home_opened",
        "user": user.id,
        "channel": channel,
        "tab": tab,
        "event_ts": at,
    }
    return event | ({"view": view} if view else {})


def session_stopped(
    user: User, channel: Channel, thread_ts: str, growing: Sequence[str], at: str
) -> JsonObject:
    """https://docs.slack.dev/reference/events/agent_session_stopped."""
    return {
        "type": "agent_session_stopped",
        "channel": channel.id,
        "thread_ts": thread_ts,
        "user": user.id,
        "streaming_message_ts": list[JsonValue](growing),
        "event_ts": at,
    }


def unarchived(channel: Channel, user: str, at: str) -> JsonObject:
    """A channel left the archive. https://docs.slack.dev/reference/events/channel_unarchive"""
    kind = "group_unarchive" if channel.kind == "group" else "channel_unarchive"
    return {"type": kind, "channel": channel.id, "user": user, "event_ts": at}


def joined(channel: Channel, user: User, inviter: str, at: str) -> JsonObject:
    """A person joined a channel. https://docs.slack.dev/reference/events/member_joined_channel"""
    return {
        "type": "member_joined_channel",
        "user": user.id,
        "channel": channel.id,
        "channel_type": "G" if channel.kind == "group" else "C",
        "team": user.team,
        "inviter": inviter,
        "event_ts": at,
    }


def _where(at: str, channel: Channel) -> JsonObject:
    return {"channel": channel.id, "event_ts": at, "channel_type": channel.kind}


def strangers_teams(event: JsonObject, author: User, app: AppIdentity) -> JsonObject:
    """An event by someone of another workspace says so in these members."""
    if author.team == app.team_id:
        return event
    return event | {"user_team": author.team, "source_team": author.team, "team": author.team}


def callback(app: AppIdentity, event: JsonObject, *, is_ext_shared: bool) -> JsonObject:
    owner: JsonObject = {"team_id": app.team_id, "user_id": app.bot_user_id}
    return CONSTANTS["callback"] | {
        "team_id": app.team_id,
        "context_team_id": app.team_id,
        "api_app_id": app.app_id,
        "event": event,
        "event_id": opaque("Ev"),
        "event_time": int(time.time()),
        "authorizations": [CONSTANTS["authorization"] | owner],
        "is_ext_shared_channel": is_ext_shared,
        "event_context": "4-" + uuid.uuid4().hex,
    }
