"""Which channels and messages the bot may touch, and with which error it is refused."""

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.people import Channel
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.timeline import Message


def visible_channel(workspace: Workspace, channel_id: str) -> Channel:
    """A public channel, or one the bot is in. Raises SlackRefused("channel_not_found")."""
    channel = workspace.roster.channels.get(channel_id)
    if channel is None:
        raise SlackRefused("channel_not_found")
    if channel.kind != "channel" and workspace.app.bot_user_id not in channel.members:
        raise SlackRefused("channel_not_found")
    return channel


def joined_channel(workspace: Workspace, channel_id: str) -> Channel:
    """One the bot is in. Raises SlackRefused("channel_not_found" | "not_in_channel")."""
    channel = visible_channel(workspace, channel_id)
    if workspace.app.bot_user_id not in channel.members:
        raise SlackRefused("not_in_channel")
    return channel


def open_channel(workspace: Workspace, channel_id: str) -> Channel:
    """One the bot may post to. Also raises SlackRefused("is_archived")."""
    channel = joined_channel(workspace, channel_id)
    if channel.is_archived:
        raise SlackRefused("is_archived")
    return channel


def current_message(workspace: Workspace, channel: Channel, ts: str) -> Message:
    """A message that is there. Raises SlackRefused("message_not_found")."""
    message = workspace.timeline.get(channel.id, ts)
    if message is None or message.is_tombstone:
        raise SlackRefused("message_not_found")
    return message


def check_thread(workspace: Workspace, channel: Channel, thread_ts: str) -> None:
    """Whether one may reply there. Raises SlackRefused."""
    if not thread_ts:
        return
    root = workspace.timeline.get(channel.id, thread_ts)
    if root is None:
        raise SlackRefused("thread_not_found")
    if root.thread_ts is not None or root.is_tombstone:
        raise SlackRefused("cannot_reply_to_message")
