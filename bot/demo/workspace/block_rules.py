"""Which blocks and views Slack accepts, and the limits over a whole message.

Members and lengths: https://docs.slack.dev/reference/block-kit/blocks and
https://docs.slack.dev/reference/views.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import orjson

from bot.demo.workspace import block_elements as kit
from bot.demo.workspace import data_blocks
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, object_at, objects_at, text_at
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
    problem,
    some_of,
    string,
    tagged,
    texts_in,
)

Surface = Literal["message", "modal", "home"]

MAX_MESSAGE_BLOCKS, MAX_VIEW_BLOCKS = 50, 100
MAX_MARKDOWN_CHARS = 12_000  # cumulative: /reference/block-kit/blocks/markdown-block
# msg_blocks_too_long, unpublished: https://github.com/slackapi/bolt-js/issues/2509
MAX_TOTAL_CHARS = 13_200
MAX_VIEW_BYTES = 250_000  # https://docs.slack.dev/reference/methods/views.open

_ID: Mapping[str, Check] = {"block_id": kit.BLOCK_ID}
_TASK: Mapping[str, Check] = {
    "task_id": string(255),
    "title": string(255),
    "status": one_of("pending", "in_progress", "complete", "error"),
}
_TASK_MORE: Mapping[str, Check] = {
    "details": kit.rich_text,
    "output": kit.rich_text,
    "sources": listing(
        tagged({"url": members({"url": kit.URL, "text": string(3000)}, {})}), maximum=100
    ),
}
_CELL = tagged(
    {
        "raw_text": members({"text": string(12_000)}, {}),
        "raw_number": members({"value": number, "text": string(255)}, {}),
        "rich_text": kit.rich_text,
    }
)
_CARD = all_of(
    members(
        {},
        {
            **_ID, "title": kit.mrkdwn(150), "subtitle": kit.mrkdwn(150), "body": kit.mrkdwn(200),
            "icon": kit.IMAGE, "hero_image": kit.IMAGE,
            "actions": listing(tagged({"button": kit.BUTTON}), maximum=5),
        },
    ),
    some_of("title", "body", "actions", "hero_image"),
)  # fmt: skip

_ANYWHERE: Mapping[str, Check] = {
    "actions": members({"elements": listing(kit.IN_ACTIONS, maximum=25)}, _ID),
    "context": members({"elements": listing(kit.IN_CONTEXT, maximum=10)}, _ID),
    "divider": members({}, _ID),
    "header": members({"text": kit.plain_text(150)}, _ID),
    "image": all_of(
        members(
            {"alt_text": string(2000)},
            {
                **_ID, "image_url": kit.URL, "slack_file": kit.SLACK_FILE,
                "title": kit.plain_text(2000),
            },
        ),
        some_of("image_url", "slack_file"),
    ),
    "input": members(
        {"label": kit.plain_text(2000), "element": kit.IN_INPUT},
        {
            **_ID, "hint": kit.plain_text(2000), "optional": boolean, "dispatch_action": boolean,
        },
    ),
    "rich_text": kit.rich_text,
    "section": all_of(
        members(
            {},
            {
                **_ID, "text": kit.text(3000), "fields": listing(kit.text(2000), maximum=10),
                "accessory": kit.IN_SECTION, "expand": boolean,
            },
        ),
        some_of("text", "fields"),
    ),
    "video": members(
        {
            "alt_text": string(2000), "title": kit.plain_text(200), "video_url": kit.URL,
            "thumbnail_url": kit.URL,
        },
        {
            **_ID, "author_name": string(50), "description": kit.plain_text(200),
            "provider_icon_url": kit.URL, "provider_name": string(50), "title_url": kit.URL,
        },
    ),
}  # fmt: skip
_IN_MESSAGES: Mapping[str, Check] = {
    "alert": members(
        {"text": kit.text(3000)},
        {**_ID, "level": one_of("default", "info", "warning", "error", "success")},
    ),
    "card": _CARD,
    "carousel": members({"elements": listing(tagged({"card": _CARD}), maximum=10)}, _ID),
    "context_actions": members({"elements": listing(kit.IN_CONTEXT_ACTIONS, maximum=5)}, _ID),
    "data_table": data_blocks.TABLE,
    "data_visualization": data_blocks.CHART,
    "markdown": members({"text": string(MAX_MARKDOWN_CHARS)}, _ID),
    "plan": members(
        {"title": string(255)},
        {**_ID, "tasks": listing(tagged({"task_card": members(_TASK, _TASK_MORE)}), 100)},
    ),
    "table": members(
        {"rows": listing(listing(_CELL, maximum=20), maximum=100)},
        {**_ID, "column_settings": anything},
    ),
    "task_card": members(_TASK, {**_ID, **_TASK_MORE}),
}
_BY_SURFACE: Mapping[Surface, Check] = {
    "message": listing(tagged({**_ANYWHERE, **_IN_MESSAGES}), MAX_MESSAGE_BLOCKS, minimum=0),
    "modal": listing(tagged(_ANYWHERE), MAX_VIEW_BLOCKS, minimum=0),
    "home": listing(tagged(_ANYWHERE), MAX_VIEW_BLOCKS, minimum=0),
}


def check_blocks(blocks: Sequence[JsonObject], surface: Surface) -> None:
    """Raises SlackRefused("invalid_blocks" | "msg_blocks_too_long")."""
    problems = list(_BY_SURFACE[surface](list(blocks), "/blocks"))
    problems += _shared_ids(blocks)
    if surface == "message":
        problems += _over_whole_message(blocks)
    if problems:
        raise SlackRefused("invalid_blocks", problems)
    if sum(len(text) for text in texts_in(list(blocks))) > MAX_TOTAL_CHARS:
        raise SlackRefused("msg_blocks_too_long")


def check_known(blocks: Sequence[JsonObject], unknown: Collection[str]) -> None:
    """Raises SlackRefused("invalid_blocks") for kinds that this workspace has not got yet.

    Slack brings new kinds to workspaces one after the other.
    """
    problems = [
        problem(f"unsupported type: {block['type']}", f"/blocks/{index}/type")
        for index, block in enumerate(blocks)
        if block.get("type") in unknown
    ]
    if problems:
        raise SlackRefused("invalid_blocks", problems)


def _shared_ids(blocks: Sequence[JsonObject]) -> list[str]:
    problems = [
        problem(f"block_id {name} already exists", "/blocks")
        for name in duplicates(blocks, "block_id")
    ]
    for index, block in enumerate(blocks):
        problems += [
            problem(f"action_id {name} already exists", f"/blocks/{index}/elements")
            for name in duplicates(objects_at(block, "elements"), "action_id")
        ]
    return problems


def _over_whole_message(blocks: Sequence[JsonObject]) -> list[str]:
    markdown = [block for block in blocks if block.get("type") == "markdown"]
    if sum(len(text_at(block, "text")) for block in markdown) > MAX_MARKDOWN_CHARS:
        return [problem(f"markdown must be less than {MAX_MARKDOWN_CHARS + 1} in all", "/blocks")]
    return data_blocks.too_many(blocks)


_COMMON: Mapping[str, Check] = {
    "private_metadata": string(3000, minimum=0),
    "callback_id": string(255, minimum=0),
    "external_id": string(255, minimum=0),
}
_MODAL: Mapping[str, Check] = {
    **_COMMON,
    "submit": kit.plain_text(24),
    "close": kit.plain_text(24),
    "clear_on_close": boolean,
    "notify_on_close": boolean,
    "submit_disabled": boolean,
}
_VIEWS: Mapping[str, Check] = {
    "modal": members({"title": kit.plain_text(24), "blocks": anything}, _MODAL),
    "home": members({"blocks": anything}, _COMMON),
}


def check_view(view: JsonObject, kind: Literal["modal", "home"]) -> None:
    """Raises SlackRefused("invalid_arguments" | "view_too_large")."""
    if len(orjson.dumps(view)) > MAX_VIEW_BYTES:
        raise SlackRefused("view_too_large")
    if view.get("type") != kind:
        raise SlackRefused("invalid_arguments", [problem(f"must be {kind}", "/view/type")])
    problems = list(_VIEWS[kind](view, "/view"))
    problems += _BY_SURFACE[kind](view.get("blocks"), "/view/blocks")
    problems += _shared_ids(objects_at(view, "blocks"))
    has_input = any(block.get("type") == "input" for block in objects_at(view, "blocks"))
    if kind == "modal" and has_input and not object_at(view, "submit"):
        problems.append(problem("submit is required when there is an input", "/view"))
    if problems:
        raise SlackRefused("invalid_arguments", problems)
