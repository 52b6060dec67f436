"""files.*: what people shared, and what the app shares."""

from dataclasses import replace

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.files import UPLOAD, Expected, Upload
from bot.demo.workspace.identity import opaque
from bot.demo.workspace.json_access import JsonObject, objects_at, text_at
from bot.demo.workspace.methods import access
from bot.demo.workspace.state import Workspace

MAX_ALT_CHARS = 1_000  # not published; what alt_txt_too_large means


def info(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """https://docs.slack.dev/reference/methods/files.info, for files of channels the bot is in."""
    shared = workspace.files.stored.get(arguments.text("file"))
    if shared is None:
        raise SlackRefused("file_not_found")
    if shared.is_deleted:
        raise SlackRefused("file_deleted")
    described = shared.as_slack(workspace.origin, workspace.app.team_id)
    return {"file": described, "comments": [], "response_metadata": {"next_cursor": ""}}


def upload_url(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """https://docs.slack.dev/reference/methods/files.getUploadURLExternal."""
    name, length = arguments.text("filename"), arguments.number("length", 0)
    if len(arguments.text("alt_txt")) > MAX_ALT_CHARS:
        raise SlackRefused("alt_txt_too_large")
    file_id = opaque("F")
    workspace.files.expected[file_id] = Expected(name, length)
    return {"upload_url": f"{workspace.origin}{UPLOAD}{file_id}", "file_id": file_id}


def complete_upload(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """https://docs.slack.dev/reference/methods/files.completeUploadExternal: shares what came whole."""
    listed = objects_at(dict(arguments.values), "files")
    names = [text_at(each, "id") for each in listed]
    expected = [workspace.files.expected.get(name) for name in names]
    if not names or any(each is None or each.content is None for each in expected):
        raise SlackRefused("file_not_found")
    channel = access.open_channel(workspace, arguments.text("channel_id"))
    thread_ts = arguments.text("thread_ts")
    access.check_thread(workspace, channel, thread_ts)
    shared = []
    for name in names:
        held = workspace.files.expected.pop(name)
        upload = Upload(held.name, held.content or b"")
        stored = workspace.files.add(workspace.app.bot_user_id, workspace.app.team_id, upload)
        shared.append(stored.as_slack(workspace.origin, workspace.app.team_id))
    said = arguments.text("initial_comment")
    message = workspace.posting.bot_message(channel.id, said, (), thread_ts or None)
    workspace.posting.post(replace(message, files=tuple(shared)))
    return {
        "files": [{"id": text_at(each, "id"), "title": text_at(each, "title")} for each in shared]
    }
