"""Interaction payloads: what the app receives when a person presses, submits or commands."""

import time

from pydantic import JsonValue

from bot.demo.workspace.block_rules import options_of
from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.json_access import CONSTANTS, JsonObject, object_at, text_at
from bot.demo.workspace.people import Channel, User
from bot.demo.workspace.timeline import Message, interactive_elements

# What an element contributes to its action, beyond its own ids.
_ECHOED = ("value", "text", "style", "placeholder")


def _common(app: AppIdentity, user: User) -> JsonObject:
    person: JsonObject = {
        "id": user.id,
        "username": user.name,
        "name": user.name,
        "team_id": user.team,
    }
    return CONSTANTS["interaction"] | {
        "user": person,
        "api_app_id": app.app_id,
        "team": {"id": app.team_id, "domain": "kortex-local"},
    }


def _action(element: JsonObject, chosen: JsonObject) -> JsonObject:
    action: JsonObject = {
        "action_id": element.get("action_id", ""),
        "block_id": element.get("block_id", ""),
        "type": element.get("type", ""),
        "action_ts": f"{time.time():.6f}",
    }
    return action | {key: element[key] for key in _ECHOED if key in element} | chosen


def _as_chosen(element: JsonObject, chosen: JsonObject) -> JsonObject:
    """What a client sends of a choice: for a menu the whole option, as the message has it; for
    feedback the text and value of the button of both that was pressed.
    """
    if element.get("type") == "feedback_buttons":
        return _as_judged(element, text_at(chosen, "value"))
    if element.get("type") != "static_select":
        return chosen
    value = text_at(object_at(chosen, "selected_option"), "value")
    for option in options_of(element):
        if option.get("value") == value:
            return {"selected_option": option}
    raise CannotDoThat(f"{element.get('action_id')} has no option {value}")


def _as_judged(element: JsonObject, value: str) -> JsonObject:
    for button in (object_at(element, "positive_button"), object_at(element, "negative_button")):
        if button.get("value") == value:
            return {"text": button["text"], "value": value}
    raise CannotDoThat(f"{element.get('action_id')} has no button {value}")


def _menus_state(message: Message, pressed: JsonObject, chosen: JsonObject) -> JsonObject:
    """`state.values`: the selected option of each menu of the message, by block and action."""
    values: dict[str, JsonObject] = {}
    for element in interactive_elements(message.blocks):
        if element.get("type") == "static_select":
            block_id, action_id = text_at(element, "block_id"), text_at(element, "action_id")
            is_pressed = (block_id, action_id) == (pressed["block_id"], pressed["action_id"])
            option = chosen if is_pressed else object_at(element, "initial_option")
            state: JsonObject = {"type": "static_select", "selected_option": option or None}
            values.setdefault(block_id, {})[action_id] = state
    return dict[str, JsonValue](values)


def block_actions(
    app: AppIdentity,
    user: User,
    channel: Channel,
    message: Message,
    element: JsonObject,
    *,
    snapshot: JsonObject,
    is_ephemeral: bool,
    chosen: JsonObject,
) -> JsonObject:
    """A press on a message, with the whole message as the client showed it.

    Raises CannotDoThat for a choice that the menu does not offer.
    """
    chosen = _as_chosen(element, chosen)
    container: JsonObject = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": channel.id,
        "is_ephemeral": is_ephemeral,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    payload = _common(app, user) | {
        "type": "block_actions",
        "container": container,
        "channel": {"id": channel.id, "name": channel.name or "directmessage"},
        "state": {"values": _menus_state(message, element, object_at(chosen, "selected_option"))},
        "actions": [_action(element, chosen)],
    }
    return payload if is_ephemeral else payload | {"message": snapshot}


def view_actions(
    app: AppIdentity, user: User, view: JsonObject, element: JsonObject, chosen: JsonObject
) -> JsonObject:
    return _common(app, user) | {
        "type": "block_actions",
        "container": {"type": "view", "view_id": view.get("id", "")},
        "view": view,
        "actions": [_action(element, chosen)],
    }


def view_submission(
    app: AppIdentity, user: User, view: JsonObject, values: JsonObject
) -> JsonObject:
    return _common(app, user) | {
        "type": "view_submission",
        "view": view | {"state": {"values": values}},
        "response_urls": list[JsonValue](),
    }


def view_closed(app: AppIdentity, user: User, view: JsonObject) -> JsonObject:
    """A modal that was dismissed, for views that ask to know."""
    return _common(app, user) | {"type": "view_closed", "view": view, "is_cleared": False}


def slash_command(
    app: AppIdentity, user: User, channel: Channel, command: str, text: str
) -> JsonObject:
    return CONSTANTS["command"] | {
        "team_id": app.team_id,
        "channel_id": channel.id,
        "channel_name": channel.name or "directmessage",
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": app.app_id,
    }


def input_values(view: JsonObject, filled: JsonObject) -> JsonObject:
    """`state.values`: the value of every input of the view, by block and action.

    `filled` maps an input's action id to its text or, for a select, the chosen option's value.
    """
    values: JsonObject = {}
    blocks = view.get("blocks")
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and block.get("type") == "input":
            element = object_at(block, "element")
            action_id = str(element.get("action_id", ""))
            state = _input_state(element, filled.get(action_id))
            values[str(block.get("block_id", ""))] = {action_id: state}
    return values


def _input_state(element: JsonObject, filled: JsonValue) -> JsonObject:
    kind = str(element.get("type", ""))
    if "options" not in element:
        return {"type": kind, "value": filled if filled != "" else None}
    options = element["options"]
    chosen = [
        option
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, dict) and option.get("value") == filled
    ]
    if kind == "checkboxes":
        return {"type": kind, "selected_options": list[JsonValue](chosen)}
    return {"type": kind, "selected_option": chosen[0] if chosen else None}
