"""chat.*: posting, editing, deleting."""

from dataclasses import replace

from bot.demo.workspace import content
from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.methods import access
from bot.demo.workspace.posting import with_block_ids
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.timeline import Ephemeral, Message


def post_message(workspace: Workspace, arguments: Arguments) -> JsonObject:
    channel = access.open_channel(workspace, _place(workspace, arguments.text("channel")))
    said = content.read_content(arguments)
    content.check_post_length(said)
    metadata = content.read_metadata(arguments)
    thread_ts = arguments.text("thread_ts")
    access.check_thread(workspace, channel, thread_ts)
    message = workspace.posting.bot_message(
        channel.id, said.text or content.NO_PREVIEW, said.blocks or (), thread_ts or None
    )
    message = replace(message, metadata=metadata or None)
    workspace.posting.post(message)
    return {
        "channel": channel.id,
        "ts": message.ts,
        "message": workspace.timeline.as_slack(message, with_metadata=True),
    }


def _place(workspace: Workspace, target: str) -> str:
    if not target.startswith(("U", "W")):
        return target
    pair = frozenset({target, workspace.app.bot_user_id})
    for channel in workspace.roster.channels.values():
        if channel.kind == "im" and channel.members == pair:
            return channel.id
    return target


def post_ephemeral(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """chat.postEphemeral. In a thread without replies it is accepted and not shown."""
    channel = access.open_channel(workspace, arguments.text("channel"))
    user = arguments.text("user")
    if user not in channel.members:
        raise SlackRefused("user_not_in_channel")
    said = content.read_content(arguments)
    content.check_post_length(said)
    thread_ts = arguments.text("thread_ts")
    message = workspace.posting.bot_message(
        channel.id, said.text or content.NO_PREVIEW, said.blocks or (), thread_ts or None
    )
    has_thread = not thread_ts or bool(workspace.timeline.replies(channel.id, thread_ts))
    workspace.posting.whisper(Ephemeral(message, user, shown=has_thread))
    return {"message_ts": message.ts}


def update(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """chat.update. Text without blocks drops the blocks; metadata stays unless it is `{}`."""
    channel = access.joined_channel(workspace, arguments.text("channel"))
    if channel.is_archived:
        raise SlackRefused("is_inactive")
    before = _own(workspace, access.current_message(workspace, channel, arguments.text("ts")))
    if workspace.streams.is_open(channel.id, before.ts):
        raise SlackRefused("streaming_state_conflict")
    said = content.read_content(arguments)
    content.check_update_length(said)
    metadata = content.read_metadata(arguments)
    after = _changed(workspace, before, said)
    if metadata is not None:
        after = replace(after, metadata=metadata or None)
    workspace.posting.edit(before, after)
    return {
        "channel": channel.id,
        "ts": after.ts,
        "text": after.text,
        "message": workspace.timeline.as_slack(after, with_metadata=True),
    }


def _own(workspace: Workspace, message: Message) -> Message:
    if message.user != workspace.app.bot_user_id:
        raise SlackRefused("cant_update_message")
    return message


def _changed(workspace: Workspace, before: Message, said: content.Content) -> Message:
    blocks = before.blocks
    if said.blocks is not None or said.text is not None:
        blocks = with_block_ids(said.blocks or ())
    if _has_rich_text(before.blocks) and blocks and not _has_rich_text(blocks):
        raise SlackRefused("block_mismatch")
    text = before.text if said.text is None else said.text
    return replace(
        before,
        text=text or content.NO_PREVIEW,
        blocks=blocks,
        edited_ts=before.edited_ts if text == before.text else workspace.posting.timestamps.next(),
    )


def _has_rich_text(blocks: tuple[JsonObject, ...]) -> bool:
    return any(block.get("type") == "rich_text" for block in blocks)


def delete(workspace: Workspace, arguments: Arguments) -> JsonObject:
    channel = access.joined_channel(workspace, arguments.text("channel"))
    message = access.current_message(workspace, channel, arguments.text("ts"))
    if message.user != workspace.app.bot_user_id or channel.is_archived:
        raise SlackRefused("cant_delete_message")
    workspace.posting.delete(message)
    return {"channel": channel.id, "ts": message.ts}


def get_permalink(workspace: Workspace, arguments: Arguments) -> JsonObject:
    channel = access.visible_channel(workspace, arguments.text("channel"))
    message = access.current_message(workspace, channel, arguments.text("message_ts"))
    link = f"https://kortex-local.slack.com/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.thread_ts:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}
