"""Which blocks, views and stream chunks Slack accepts.

`block_kit.schema.json` has members and lengths. This module checks what a schema cannot say: values
that must be unique, charts and tables as a whole, and the limits over one message.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final, Literal

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from pydantic import JsonValue

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, as_object, object_at, objects_at, text_at

Surface = Literal["message", "modal", "home"]
Definition = Literal["blocks_message", "blocks_modal", "modal", "home", "chunks"]

MAX_MARKDOWN_CHARS: Final = 12_000  # cumulative: /reference/block-kit/blocks/markdown-block
# msg_blocks_too_long, unpublished: https://github.com/slackapi/bolt-js/issues/2509
MAX_TOTAL_CHARS: Final = 13_200
MAX_VIEW_BYTES: Final = 250_000  # https://docs.slack.dev/reference/methods/views.open
MAX_CHARTS: Final = 2  # of a message, unpublished: https://github.com/vercel/chat/pull/696
MAX_TABLE_CHARS: Final = 10_000  # over all cells of a table

_BLOCKS: Mapping[Surface, Definition] = {
    "message": "blocks_message",
    "modal": "blocks_modal",
    "home": "blocks_modal",
}
# Read once, at import: checks run on the event loop.
_SCHEMA: Final = orjson.loads(
    resources.files(__package__).joinpath("block_kit.schema.json").read_bytes()
)
_MENUS: Final = frozenset({"static_select", "multi_static_select"})


def check_blocks(blocks: Sequence[JsonObject], surface: Surface) -> None:
    """Raises SlackRefused("invalid_blocks" | "msg_blocks_too_long")."""
    problems = _block_problems(list[JsonValue](blocks), surface, "/blocks")
    if surface == "message":
        problems += _message_problems(blocks)
    if problems:
        raise SlackRefused("invalid_blocks", problems)
    if sum(len(text) for text in _texts(list[JsonValue](blocks))) > MAX_TOTAL_CHARS:
        raise SlackRefused("msg_blocks_too_long")


def check_known(blocks: Sequence[JsonObject], unknown: Collection[str]) -> None:
    """Raises SlackRefused("invalid_blocks") for types that this workspace does not have yet.

    Slack brings new types to workspaces one after the other.
    """
    problems = [
        _problem(f"unsupported type: {block['type']}", f"/blocks/{index}/type")
        for index, block in enumerate(blocks)
        if block.get("type") in unknown
    ]
    if problems:
        raise SlackRefused("invalid_blocks", problems)


def check_view(view: JsonObject, kind: Literal["modal", "home"]) -> None:
    """Raises SlackRefused("invalid_arguments" | "view_too_large")."""
    if len(orjson.dumps(view)) > MAX_VIEW_BYTES:
        raise SlackRefused("view_too_large")
    if view.get("type") != kind:
        raise SlackRefused("invalid_arguments", [_problem(f"must be {kind}", "/view/type")])
    problems = list(_schema_problems(kind, view, "/view"))
    problems += _block_problems(view.get("blocks"), kind, "/view/blocks")
    has_input = any(block.get("type") == "input" for block in objects_at(view, "blocks"))
    if kind == "modal" and has_input and not object_at(view, "submit"):
        problems.append(_problem("submit is required when there is an input", "/view"))
    if problems:
        raise SlackRefused("invalid_arguments", problems)


def check_chunks(chunks: Sequence[JsonObject]) -> None:
    """Raises SlackRefused("invalid_chunks")."""
    if problems := list(_schema_problems("chunks", list[JsonValue](chunks), "/chunks")):
        raise SlackRefused("invalid_chunks", problems)


def options_of(menu: JsonObject) -> list[JsonObject]:
    """Every option of a menu, also of one in groups."""
    grouped = [objects_at(group, "options") for group in objects_at(menu, "option_groups")]
    return [*objects_at(menu, "options"), *(option for group in grouped for option in group)]


def _problem(what: str, pointer: str) -> str:
    return f"[ERROR] {what} [json-pointer:{pointer}]"


@cache
def _validator(definition: Definition) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", **_SCHEMA})


def _schema_problems(definition: Definition, value: JsonValue, at: str) -> Iterator[str]:
    for error in _validator(definition).iter_errors(value):
        yield from _in_words(error, at)


def _in_words(error: ValidationError, at: str) -> Iterator[str]:
    pointer = "".join([at, *(f"/{step}" for step in error.absolute_path)])
    if error.validator == "oneOf":
        yield from _of_named_type(error, at, pointer)
        return
    limit = error.validator_value
    words = {
        "maxLength": f"must be less than {_more(limit, 1)} characters",
        "minLength": f"must be more than {_more(limit, -1)} characters",
        "maxItems": f"no more than {limit} items allowed",
        "minItems": f"must have at least {limit} items",
        "type": f"must be of type {limit}",
        "const": f"must be {limit}",
        "anyOf": "one of its alternatives is required",
        "not": "only one of its alternatives is allowed",
    }
    yield _problem(words.get(str(error.validator), error.message), pointer)


def _of_named_type(error: ValidationError, at: str, pointer: str) -> Iterator[str]:
    branches: dict[JsonValue, list[ValidationError]] = {}
    for each in error.context or ():
        branches.setdefault(each.schema_path[0], []).append(each)
    named = [found for found in branches.values() if all(_member(each) != "type" for each in found)]
    if len(named) != 1 or not isinstance(error.instance, dict):
        kind = error.instance.get("type") if isinstance(error.instance, dict) else None
        yield _problem(f"unsupported type: {kind}", f"{pointer}/type")
        return
    for each in named[0]:
        yield from _in_words(each, at)


def _member(error: ValidationError) -> str:
    return str(error.relative_path[0]) if error.relative_path else ""


def _more(limit: object, by: int) -> int:
    return limit + by if isinstance(limit, int) else by


def _block_problems(blocks: JsonValue, surface: Surface, at: str) -> list[str]:
    problems = list(_schema_problems(_BLOCKS[surface], blocks, at))
    listed = [each for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []
    problems += [
        _problem(f"block_id {name} already exists", at) for name in _repeated(listed, "block_id")
    ]
    for index, block in enumerate(listed):
        problems += _object_problems(block, f"{at}/{index}")
    return problems


def _object_problems(value: JsonValue, at: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _object_problems(each, f"{at}/{index}")
    if not isinstance(value, dict):
        return
    for name in _repeated(objects_at(value, "elements"), "action_id"):
        yield _problem(f"action_id {name} already exists", f"{at}/elements")
    if value.get("type") in _MENUS:
        yield from _menu_problems(value, at)
    if value.get("type") == "data_visualization":
        yield from _chart_problems(object_at(value, "chart"), f"{at}/chart")
    if value.get("type") == "data_table":
        yield from _table_problems(value, at)
    for name, member in value.items():
        yield from _object_problems(member, f"{at}/{name}")


def _menu_problems(menu: JsonObject, at: str) -> Iterator[str]:
    options = options_of(menu)
    for name in _repeated(options, "value"):
        yield _problem(f"option value {name} already exists", at)
    initial = object_at(menu, "initial_option")
    if initial and text_at(initial, "value") not in [text_at(each, "value") for each in options]:
        yield _problem("must be one of the options", f"{at}/initial_option")


def _chart_problems(chart: JsonObject, at: str) -> Iterator[str]:
    series = objects_at(chart, "series")
    for name in _repeated(series, "name"):
        yield _problem(f"series name {name} already exists", f"{at}/series")
    listed = object_at(chart, "axis_config").get("categories")
    categories = sorted(map(str, listed)) if isinstance(listed, list) else []
    if len(set(categories)) < len(categories):
        yield _problem("categories must be unique", f"{at}/axis_config/categories")
    for index, each in enumerate(series):
        if sorted(text_at(point, "label") for point in objects_at(each, "data")) != categories:
            where = f"{at}/series/{index}/data"
            yield _problem("data must have one point for each category", where)


def _table_problems(table: JsonObject, at: str) -> Iterator[str]:
    listed = table.get("rows")
    rows = [row for row in listed if isinstance(row, list)] if isinstance(listed, list) else []
    if len({len(row) for row in rows}) > 1:
        yield _problem("all rows must have the same number of cells", f"{at}/rows")
    if any(as_object(cell).get("type") == "rich_text" for row in rows[:1] for cell in row):
        yield _problem("rich_text is not allowed in the header", f"{at}/rows/0")
    if sum(map(len, _texts(list[JsonValue](rows)))) > MAX_TABLE_CHARS:
        yield _problem(f"must be less than {MAX_TABLE_CHARS + 1} characters", f"{at}/rows")


def _message_problems(blocks: Sequence[JsonObject]) -> Iterator[str]:
    markdown = [block for block in blocks if block.get("type") == "markdown"]
    if sum(len(text_at(block, "text")) for block in markdown) > MAX_MARKDOWN_CHARS:
        yield _problem(f"markdown must be less than {MAX_MARKDOWN_CHARS + 1} in all", "/blocks")
    kinds = [block.get("type") for block in blocks]
    if kinds.count("data_visualization") > MAX_CHARTS:
        yield _problem(f"no more than {MAX_CHARTS} charts are allowed", "/blocks")
    if kinds.count("table") + kinds.count("data_table") > 1:
        yield _problem("only one table is allowed", "/blocks")


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "text" and isinstance(member, str):
                yield member
            else:
                yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


def _repeated(objects: Sequence[JsonObject], name: str) -> list[str]:
    counts = Counter(text_at(each, name) for each in objects)
    return [value for value, count in counts.items() if value and count > 1]
