"""chat.startStream, chat.appendStream, chat.stopStream: a message that grows.

Arguments and errors: https://docs.slack.dev/reference/methods/chat.startStream and its siblings.
"""

from dataclasses import replace

from bot.demo.workspace import content
from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.block_rules import MAX_MARKDOWN_CHARS, check_blocks
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, objects_at
from bot.demo.workspace.methods import access
from bot.demo.workspace.people import Channel
from bot.demo.workspace.posting import with_block_ids
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.streams import Growing, read_chunks
from bot.demo.workspace.timeline import Message


def start(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """chat.startStream. In a channel it needs to know who reads along."""
    channel = access.open_channel(workspace, arguments.text("channel"))
    thread_ts = arguments.text("thread_ts")
    access.check_thread(workspace, channel, thread_ts)
    _check_recipient(workspace, channel, arguments)
    mode = arguments.text("task_display_mode")
    chunks = _said(arguments)
    growing = workspace.streams.begun(mode, arguments.text("recipient_user_id")).after(chunks)
    message = workspace.posting.bot_message(channel.id, "", (), thread_ts)
    workspace.streams.put(channel.id, message.ts, growing)
    workspace.posting.post(_shown(message, growing))
    workspace.sessions.update(channel.id, thread_ts, status="processing")
    return {"channel": channel.id, "ts": message.ts}


def append(workspace: Workspace, arguments: Arguments) -> JsonObject:
    channel, message, growing = _growing(workspace, arguments)
    chunks = _said(arguments)
    if not chunks:
        raise SlackRefused("no_text")
    grown = growing.after(chunks)
    workspace.streams.put(channel.id, message.ts, grown)
    workspace.posting.edit(message, _shown(message, grown))
    return {"channel": channel.id, "ts": message.ts}


def stop(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """chat.stopStream. From now on it is a message like any other."""
    channel, message, growing = _growing(workspace, arguments)
    status = arguments.text("session_status")
    grown = growing.after(_said(arguments))
    more = objects_at(dict(arguments.values), "blocks")
    check_blocks(more, "message")
    metadata = content.read_metadata(arguments)
    sealed = _shown(message, grown)
    sealed = replace(
        sealed,
        text=sealed.text or content.NO_PREVIEW,
        blocks=(*sealed.blocks, *with_block_ids(more)),
        metadata=metadata or None,
    )
    workspace.streams.end(channel.id, message.ts)
    workspace.posting.edit(message, sealed)
    workspace.sessions.update(channel.id, message.root_ts, status=status or "active")
    return {
        "channel": channel.id,
        "ts": message.ts,
        "message": workspace.timeline.as_slack(sealed, with_metadata=True),
    }


def _growing(workspace: Workspace, arguments: Arguments) -> tuple[Channel, Message, Growing]:
    channel = access.open_channel(workspace, arguments.text("channel"))
    message = access.current_message(workspace, channel, arguments.text("ts"))
    if message.user != workspace.app.bot_user_id:
        raise SlackRefused("message_not_owned_by_app")
    return channel, message, workspace.streams.open_one(channel.id, message.ts)


def _said(arguments: Arguments) -> tuple[JsonObject, ...]:
    text = arguments.text("markdown_text")
    if text and arguments.given("chunks"):
        raise SlackRefused("invalid_arguments")
    if len(text) > MAX_MARKDOWN_CHARS:
        raise SlackRefused("msg_too_long")
    if text:
        return ({"type": "markdown_text", "text": text},)
    return read_chunks(arguments.json("chunks")) if arguments.given("chunks") else ()


def _check_recipient(workspace: Workspace, channel: Channel, arguments: Arguments) -> None:
    if channel.kind == "im":
        return
    for name in ("recipient_user_id", "recipient_team_id"):
        if not arguments.text(name):
            raise SlackRefused(f"missing_{name}")
    user = workspace.roster.users.get(arguments.text("recipient_user_id"))
    if user is None:
        raise SlackRefused("user_not_found")
    if user.team != arguments.text("recipient_team_id"):
        raise SlackRefused("team_not_found")


def _shown(message: Message, growing: Growing) -> Message:
    return replace(message, text=growing.text, blocks=with_block_ids(growing.blocks))
