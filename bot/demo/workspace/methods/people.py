"""auth.test, users.* and usergroups.*."""

from pydantic import JsonValue

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.state import Workspace


def auth_test(workspace: Workspace, _arguments: Arguments) -> JsonObject:
    app = workspace.app
    return {
        "url": "https://kortex-local.slack.com/",
        "team": app.team_name,
        "user": app.bot_name,
        "team_id": app.team_id,
        "user_id": app.bot_user_id,
        "bot_id": app.bot_id,
        "is_enterprise_install": False,
    }


def user_info(workspace: Workspace, arguments: Arguments) -> JsonObject:
    user = workspace.roster.users.get(arguments.text("user"))
    if user is None:
        raise SlackRefused("user_not_found")
    described = user.as_slack()
    if arguments.flag("include_locale"):
        described["locale"] = "en-US"
    return {"user": described}


def user_by_email(workspace: Workspace, arguments: Arguments) -> JsonObject:
    email = arguments.text("email").casefold()
    for user in workspace.roster.users.values():
        described = user.as_slack()
        profile = described["profile"]
        known = profile.get("email") if isinstance(profile, dict) else None
        if not user.deleted and isinstance(known, str) and known.casefold() == email:
            return {"user": described}
    raise SlackRefused("users_not_found")


def group_list(workspace: Workspace, arguments: Arguments) -> JsonObject:
    groups: list[JsonValue] = [
        group.as_slack(
            workspace.app.team_id,
            with_users=arguments.flag("include_users"),
            with_count=arguments.flag("include_count"),
        )
        for group in workspace.roster.groups.values()
        if arguments.flag("include_disabled") or not group.disabled
    ]
    return {"usergroups": groups}


def group_users(workspace: Workspace, arguments: Arguments) -> JsonObject:
    group = workspace.roster.groups.get(arguments.text("usergroup"))
    if group is None or (group.disabled and not arguments.flag("include_disabled")):
        raise SlackRefused("no_such_subteam")
    return {"users": list[JsonValue](group.users)}
