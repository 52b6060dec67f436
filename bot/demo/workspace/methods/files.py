"""files.info."""

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.state import Workspace


def info(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """https://docs.slack.dev/reference/methods/files.info, for files of channels the bot is in."""
    shared = workspace.files.stored.get(arguments.text("file"))
    if shared is None:
        raise SlackRefused("file_not_found")
    if shared.is_deleted:
        raise SlackRefused("file_deleted")
    described = shared.as_slack(workspace.origin, workspace.app.team_id)
    return {"file": described, "comments": [], "response_metadata": {"next_cursor": ""}}
