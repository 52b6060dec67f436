"""conversations.*: what the bot reads of channels and threads."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import JsonValue

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.methods import access
from bot.demo.workspace.people import Channel
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.timeline import Message

T = TypeVar("T")


def page(
    items: Sequence[T], arguments: Arguments, default: int, maximum: int
) -> tuple[Sequence[T], str]:
    """The page and the next cursor, empty on the last one.

    Raises SlackRefused("invalid_limit" | "invalid_cursor").
    """
    limit = arguments.number("limit", default)
    if limit < 1 or (arguments.given("limit") and limit > maximum):
        raise SlackRefused("invalid_limit")
    start = _start(arguments.text("cursor"))
    if not 0 <= start <= len(items):
        raise SlackRefused("invalid_cursor")
    end = start + limit
    return items[start:end], f"next:{end}" if end < len(items) else ""


def _start(cursor: str) -> int:
    try:
        return int(cursor.removeprefix("next:") or 0)
    except ValueError:
        raise SlackRefused("invalid_cursor") from None


# https://docs.slack.dev/reference/methods/conversations.replies, .history and .members
MAX_LIMIT, DEFAULT_REPLIES, DEFAULT_HISTORY, DEFAULT_MEMBERS = 999, 1000, 100, 100


def info(workspace: Workspace, arguments: Arguments) -> JsonObject:
    channel = access.visible_channel(workspace, arguments.text("channel"))
    described = channel.as_slack(workspace.app.team_id, workspace.app.bot_user_id)
    if arguments.flag("include_num_members"):
        described["num_members"] = len(channel.members)
    return {"channel": described}


def replies(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """conversations.replies: the root first, then its replies, oldest first."""
    channel = access.joined_channel(workspace, arguments.text("channel"))
    root = workspace.timeline.get(channel.id, arguments.text("ts"))
    if root is None:
        raise SlackRefused("thread_not_found")
    answers = _within(workspace.timeline.replies(channel.id, root.ts), arguments)
    return _messages(workspace, [root, *answers], arguments, DEFAULT_REPLIES)


def history(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """conversations.history: without replies, newest first."""
    channel = access.joined_channel(workspace, arguments.text("channel"))
    top = [m for m in workspace.timeline.channel(channel.id) if m.thread_ts is None]
    return _messages(workspace, _within(top, arguments)[::-1], arguments, DEFAULT_HISTORY)


def _within(messages: Sequence[Message], arguments: Arguments) -> list[Message]:
    oldest, latest = _moment(arguments, "oldest", "-inf"), _moment(arguments, "latest", "inf")
    ends = (oldest, latest) if arguments.flag("inclusive") else ()
    at = [(float(message.ts), message) for message in messages]
    return [message for ts, message in at if oldest < ts < latest or ts in ends]


def _moment(arguments: Arguments, name: str, default: str) -> float:
    try:
        return float(arguments.text(name) or default)
    except ValueError:
        raise SlackRefused(f"invalid_ts_{name}") from None


def _messages(
    workspace: Workspace, messages: Sequence[Message], arguments: Arguments, default: int
) -> JsonObject:
    chosen, cursor = page(messages, arguments, default, MAX_LIMIT)
    with_metadata = arguments.flag("include_all_metadata")
    shown: list[JsonValue] = [
        workspace.timeline.as_slack(message, with_metadata=with_metadata) for message in chosen
    ]
    answer: JsonObject = {"messages": shown, "has_more": bool(cursor)}
    return answer | ({"response_metadata": {"next_cursor": cursor}} if cursor else {})


def members(workspace: Workspace, arguments: Arguments) -> JsonObject:
    channel: Channel = access.visible_channel(workspace, arguments.text("channel"))
    chosen, cursor = page(sorted(channel.members), arguments, DEFAULT_MEMBERS, MAX_LIMIT)
    return {"members": list[JsonValue](chosen), "response_metadata": {"next_cursor": cursor}}
