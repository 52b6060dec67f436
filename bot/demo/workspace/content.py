"""The text, blocks and metadata of a message argument, checked against Slack's limits."""

from dataclasses import dataclass

import orjson
from pydantic import JsonValue

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.block_rules import check_blocks
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, objects_at
from bot.demo.workspace.typed_text import escape

# https://docs.slack.dev/reference/methods/chat.postMessage ("Truncating content"): Slack cuts
# here; refusing shows the loss.
MAX_POST_CHARS = 40_000
# https://docs.slack.dev/reference/methods/chat.update (msg_too_long). Measured in bytes after
# escaping: https://gitlab.com/gitlab-org/gitlab/-/merge_requests/258898
MAX_UPDATE_BYTES = 4_000
MAX_MARKDOWN_CHARS = 12_000  # https://docs.slack.dev/reference/methods/chat.postMessage
MAX_METADATA_BYTES = 16_000  # https://docs.slack.dev/messaging/message-metadata
NO_PREVIEW = "This content can't be displayed."


@dataclass(frozen=True, slots=True)
class Content:
    """What a message will say. None: the caller did not send it."""

    text: str | None
    blocks: tuple[JsonObject, ...] | None

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.blocks)


def read_content(arguments: Arguments) -> Content:
    """Raises SlackRefused with Slack's code for the problem."""
    if arguments.given("markdown_text"):
        return _from_markdown(arguments)
    blocks = _blocks(arguments)
    if blocks:
        check_blocks(blocks, "message")
    return Content(arguments.text("text") if arguments.given("text") else None, blocks)


def read_answer(body: JsonObject) -> Content:
    """What an answer to an interaction says. Raises SlackRefused."""
    given = {name: value for name, value in body.items() if value is not None}
    said = read_content(Arguments(given))
    check_post_length(said)
    return said


def _from_markdown(arguments: Arguments) -> Content:
    if arguments.text("text") or arguments.json("blocks"):
        raise SlackRefused("markdown_text_conflict")
    text = arguments.text("markdown_text")
    if len(text) > MAX_MARKDOWN_CHARS:
        raise SlackRefused("msg_too_long")
    return Content(text, ({"type": "markdown", "text": text},) if text else ())


def _blocks(arguments: Arguments) -> tuple[JsonObject, ...] | None:
    if not arguments.given("blocks"):
        return None
    value = arguments.json("blocks")
    objects = objects_at({"blocks": value}, "blocks")
    if not isinstance(value, list) or len(objects) != len(value):
        raise SlackRefused("invalid_blocks_format")
    return tuple(objects)


def check_post_length(content: Content) -> None:
    """Raises SlackRefused("no_text" | "msg_too_long")."""
    if content.is_empty:
        raise SlackRefused("no_text")
    if content.text and len(content.text) > MAX_POST_CHARS:
        raise SlackRefused("msg_too_long")


def check_update_length(content: Content) -> None:
    """Raises SlackRefused("no_text" | "msg_too_long")."""
    if content.is_empty:
        raise SlackRefused("no_text")
    if content.text and len(escape(content.text).encode()) > MAX_UPDATE_BYTES:
        raise SlackRefused("msg_too_long")


def read_metadata(arguments: Arguments) -> JsonObject | None:
    """The metadata; an empty object when the caller sent `{}`; None when not sent."""
    if not arguments.given("metadata"):
        return None
    metadata: JsonValue = arguments.json("metadata")
    if not isinstance(metadata, dict):
        raise SlackRefused("invalid_metadata_format")
    if not metadata:
        return {}
    has_shape = (
        isinstance(metadata.get("event_type"), str)
        and metadata["event_type"] != ""
        and isinstance(metadata.get("event_payload"), dict)
    )
    if not has_shape:
        raise SlackRefused("invalid_metadata_format")
    if set(metadata) - {"event_type", "event_payload", "entities"}:
        raise SlackRefused("invalid_metadata_schema")
    if len(orjson.dumps(metadata)) > MAX_METADATA_BYTES:
        raise SlackRefused("metadata_too_large")
    return metadata
