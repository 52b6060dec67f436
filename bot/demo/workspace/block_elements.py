"""The shapes of Block Kit's composition objects and elements.

Members and lengths: https://docs.slack.dev/reference/block-kit/composition-objects and
https://docs.slack.dev/reference/block-kit/block-elements.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from bot.demo.workspace.json_access import JsonObject, as_object, objects_at, text_at
from bot.demo.workspace.shapes import (
    Check,
    all_of,
    anything,
    boolean,
    duplicates,
    listing,
    members,
    number,
    one_of,
    only_one_of,
    problem,
    some_of,
    string,
    tagged,
)

ACTION_ID = string(255)
BLOCK_ID = string(255)
URL = string(3000)


def plain_text(maximum: int) -> Check:
    """A `plain_text` object of at most so many characters."""
    return tagged({"plain_text": members({"text": string(maximum)}, {"emoji": boolean})})


def mrkdwn(maximum: int) -> Check:
    """A `mrkdwn` object of at most so many characters."""
    return tagged({"mrkdwn": members({"text": string(maximum)}, {"verbatim": boolean})})


def text(maximum: int) -> Check:
    """Either text object."""
    return tagged(
        {
            "plain_text": members({"text": string(maximum)}, {"emoji": boolean}),
            "mrkdwn": members({"text": string(maximum)}, {"verbatim": boolean}),
        }
    )


STYLE = one_of("primary", "danger")
CONFIRM = members(
    {"text": text(300)},
    {"title": plain_text(100), "confirm": plain_text(30), "deny": plain_text(30), "style": STYLE},
)
_OPTION_MEMBERS: Mapping[str, Check] = {"description": plain_text(75), "url": URL}
PLAIN_OPTION = members({"text": plain_text(75), "value": string(150)}, _OPTION_MEMBERS)
OPTION = members({"text": text(75), "value": string(150)}, _OPTION_MEMBERS)
OPTION_GROUP = members({"label": plain_text(75), "options": listing(PLAIN_OPTION, maximum=100)}, {})
SLACK_FILE = all_of(members({}, {"id": string(255), "url": URL}), some_of("id", "url"))
IMAGE = all_of(
    members({"alt_text": string(2000)}, {"image_url": URL, "slack_file": SLACK_FILE}),
    some_of("image_url", "slack_file"),
)
_DISPATCH = members(
    {}, {"trigger_actions_on": listing(one_of("on_enter_pressed", "on_character_entered"), 2)}
)

# What every interactive element may have.
_ACTION: Mapping[str, Check] = {"action_id": ACTION_ID, "confirm": CONFIRM}
_FIELD: Mapping[str, Check] = {
    "action_id": ACTION_ID,
    "placeholder": plain_text(150),
    "focus_on_load": boolean,
}
_MENU: Mapping[str, Check] = {**_FIELD, "confirm": CONFIRM}
_CHOICES: Mapping[str, Check] = {
    "options": listing(PLAIN_OPTION, maximum=100),
    "option_groups": listing(OPTION_GROUP, maximum=100),
}


def options_of(menu: JsonObject) -> list[JsonObject]:
    """Every option of a menu, also of one in groups."""
    grouped = [objects_at(group, "options") for group in objects_at(menu, "option_groups")]
    return [*objects_at(menu, "options"), *(option for group in grouped for option in group)]


def _distinct_values(value: JsonValue, pointer: str) -> Iterator[str]:
    """Option values tell choices apart, so they are unique over all groups of a menu."""
    menu = as_object(value)
    options = options_of(menu)
    for name in duplicates(options, "value"):
        yield problem(f"option value {name} already exists", pointer)
    initial = as_object(menu.get("initial_option"))
    if initial and text_at(initial, "value") not in [text_at(each, "value") for each in options]:
        yield problem("must be one of the options", f"{pointer}/initial_option")


_GOOD_CHOICES = all_of(
    some_of("options", "option_groups"),
    only_one_of("options", "option_groups"),
    _distinct_values,
)

BUTTON = members(
    {"text": plain_text(75)},
    {
        **_ACTION, "url": URL, "value": string(2000), "style": STYLE,
        "accessibility_label": string(75),
    },
)  # fmt: skip
_FEEDBACK = members(
    {"text": plain_text(75), "value": string(2000)}, {"accessibility_label": string(75)}
)


def _select(kind: str, initial: Mapping[str, Check]) -> dict[str, Check]:
    """A menu and its `multi_` twin."""
    single = members({}, {**_MENU, **initial, "response_url_enabled": boolean})
    listed = {name + "s": anything for name in initial}
    multiple = members({}, {**_MENU, **listed, "max_selected_items": number})
    return {f"{kind}_select": single, f"multi_{kind}_select": multiple}


_STATIC: dict[str, Check] = {
    "static_select": all_of(
        members({}, {**_MENU, **_CHOICES, "initial_option": PLAIN_OPTION}), _GOOD_CHOICES
    ),
    "multi_static_select": all_of(
        members(
            {},
            {
                **_MENU, **_CHOICES, "initial_options": listing(PLAIN_OPTION, 100),
                "max_selected_items": number,
            },
        ),
        _GOOD_CHOICES,
    ),
}  # fmt: skip
_PICKERS: dict[str, Check] = {
    "datepicker": members({}, {**_MENU, "initial_date": string(10)}),
    "timepicker": members({}, {**_MENU, "initial_time": string(5), "timezone": string(64)}),
}
_MOMENT: dict[str, Check] = {
    "datetimepicker": members(
        {}, {**_ACTION, "focus_on_load": boolean, "initial_date_time": number}
    ),
}
_BOXES: dict[str, Check] = {
    "checkboxes": members(
        {"options": listing(OPTION, maximum=10)},
        {**_ACTION, "focus_on_load": boolean, "initial_options": listing(OPTION, 10)},
    ),
    "radio_buttons": members(
        {"options": listing(OPTION, maximum=10)},
        {**_ACTION, "focus_on_load": boolean, "initial_option": OPTION},
    ),
}
_MENUS: dict[str, Check] = {
    **_STATIC,
    **_select("users", {"initial_user": string(255)}),
    **_select("channels", {"initial_channel": string(255)}),
    **_select(
        "conversations",
        {
            "initial_conversation": string(255),
            "default_to_current_conversation": boolean,
            "filter": anything,
        },
    ),
    **_select("external", {"initial_option": PLAIN_OPTION, "min_query_length": number}),
}
_PRESSED: dict[str, Check] = {
    "button": BUTTON,
    "overflow": members({"options": listing(PLAIN_OPTION, maximum=5)}, _ACTION),
    "workflow_button": members(
        {"text": plain_text(75), "workflow": anything},
        {"action_id": ACTION_ID, "style": STYLE, "accessibility_label": string(75)},
    ),
}
_TYPED: Mapping[str, Check] = {**_FIELD, "dispatch_action_config": _DISPATCH}
_INPUTS: dict[str, Check] = {
    "plain_text_input": members(
        {},
        {
            **_TYPED, "initial_value": string(3000, minimum=0), "multiline": boolean,
            "min_length": number, "max_length": number,
        },
    ),
    "number_input": members(
        {"is_decimal_allowed": boolean},
        {
            **_TYPED, "initial_value": string(255), "min_value": string(255),
            "max_value": string(255),
        },
    ),
    "email_text_input": members({}, {**_TYPED, "initial_value": string(3000)}),
    "url_text_input": members({}, {**_TYPED, "initial_value": string(3000)}),
    "file_input": members(
        {}, {"action_id": ACTION_ID, "filetypes": anything, "max_files": number}
    ),
    "rich_text_input": members({}, {**_TYPED, "initial_value": anything}),
}  # fmt: skip

IN_ACTIONS = tagged({**_PRESSED, **_MENUS, **_PICKERS, **_MOMENT, **_BOXES})
IN_SECTION = tagged({**_PRESSED, **_MENUS, **_PICKERS, **_BOXES, "image": IMAGE})
IN_INPUT = tagged({**_MENUS, **_PICKERS, **_MOMENT, **_BOXES, **_INPUTS})
IN_CONTEXT = tagged(
    {
        "image": IMAGE,
        "plain_text": members({"text": string(2000)}, {"emoji": boolean}),
        "mrkdwn": members({"text": string(2000)}, {"verbatim": boolean}),
    }
)
IN_CONTEXT_ACTIONS = tagged(
    {
        "feedback_buttons": members(
            {"positive_button": _FEEDBACK, "negative_button": _FEEDBACK}, {"action_id": ACTION_ID}
        ),
        "icon_button": members(
            {"icon": one_of("trash"), "text": plain_text(75)},
            {
                **_ACTION, "value": string(2000), "accessibility_label": string(75),
                "visible_to_user_ids": listing(string(255), 10),
            },
        ),
    }
)  # fmt: skip


_STYLED: Mapping[str, Check] = {"style": anything}
_INLINE = tagged(
    {
        "text": members({"text": string(12_000)}, _STYLED),
        "link": members({"url": URL}, {**_STYLED, "text": string(3000), "unsafe": boolean}),
        "user": members({"user_id": string(255)}, _STYLED),
        "usergroup": members({"usergroup_id": string(255)}, _STYLED),
        "channel": members({"channel_id": string(255)}, _STYLED),
        "team": members({"team_id": string(255)}, _STYLED),
        "emoji": members({"name": string(255)}, {**_STYLED, "unicode": string(64), "url": URL}),
        "broadcast": members({"range": one_of("here", "channel", "everyone")}, _STYLED),
        "color": members({"value": string(16)}, _STYLED),
        "date": members(
            {"timestamp": number, "format": string(255)},
            {**_STYLED, "url": URL, "fallback": string(3000)},
        ),
    }
)
_SECTION = members({"elements": listing(_INLINE, maximum=1000, minimum=0)}, {})
rich_text = members(
    {
        "elements": listing(
            tagged(
                {
                    "rich_text_section": _SECTION,
                    "rich_text_quote": members(
                        {"elements": listing(_INLINE, 1000)}, {"border": number}
                    ),
                    "rich_text_preformatted": members(
                        {"elements": listing(_INLINE, 1000)},
                        {"border": number, "language": string(64)},
                    ),
                    "rich_text_list": members(
                        {
                            "elements": listing(tagged({"rich_text_section": _SECTION}), 1000),
                            "style": one_of("bullet", "ordered"),
                        },
                        {"indent": number, "offset": number, "border": number},
                    ),
                }
            ),
            maximum=1000,
        )
    },
    {"block_id": BLOCK_ID},
)
