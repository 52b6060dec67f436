"""views.*: modals and the app's home."""

from typing import Literal

from pydantic import JsonValue

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.block_rules import check_view
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.feed import Change
from bot.demo.workspace.json_access import JsonObject, object_at, objects_at
from bot.demo.workspace.posting import with_block_ids
from bot.demo.workspace.state import Workspace

MAX_STACK = 3  # https://docs.slack.dev/reference/methods/views.push


def _view(arguments: Arguments, kind: Literal["modal", "home"]) -> JsonObject:
    view = object_at(dict(arguments.values), "view")
    check_view(view, kind)
    return view | {"blocks": list[JsonValue](with_block_ids(objects_at(view, "blocks")))}


def open_view(workspace: Workspace, arguments: Arguments) -> JsonObject:
    view = _view(arguments, "modal")
    user = _spent_trigger(workspace, arguments)
    return _opened(workspace, user, view)


def push_view(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """views.push: on top of a modal that is open, three deep at most."""
    view = _view(arguments, "modal")
    user = _spent_trigger(workspace, arguments)
    below = workspace.modals.of(user)
    if not below:
        raise SlackRefused("not_found")
    if len(below) >= MAX_STACK:
        raise SlackRefused("push_limit_reached")
    return _opened(workspace, user, view)


def _spent_trigger(workspace: Workspace, arguments: Arguments) -> str:
    return workspace.triggers.spend(
        arguments.text("trigger_id") or arguments.text("interactivity_pointer")
    )


def _opened(workspace: Workspace, user: str, view: JsonObject) -> JsonObject:
    shown = workspace.modals.open(user, view)
    workspace.feed.publish(Change("view", shown, user=user))
    return {"view": shown}


def publish_view(workspace: Workspace, arguments: Arguments) -> JsonObject:
    view = _view(arguments, "home")
    user = arguments.text("user_id")
    if user not in workspace.roster.users:
        raise SlackRefused("invalid_arguments", ["[ERROR] unknown user [json-pointer:/user_id]"])
    shown = workspace.modals.publish(user, view)
    workspace.feed.publish(Change("home", shown, user=user))
    return {"view": shown}
