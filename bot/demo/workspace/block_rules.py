"""Which blocks, views and stream chunks Slack accepts: `block_kit.schema.json`, and its own keywords.

`uniqueBy`: no two members share that property. `maxText`: characters in all, by the type of a block
("": of any). `sameLengths`, `menu` and `pointPerCategory`: lists, menus and charts as a whole.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Final, Literal

import orjson
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from pydantic import JsonValue

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, object_at, objects_at, text_at

Surface = Literal["message", "modal", "home"]

MAX_MARKDOWN_CHARS: Final = 12_000  # cumulative: /reference/block-kit/blocks/markdown-block
# msg_blocks_too_long, unpublished: https://github.com/slackapi/bolt-js/issues/2509
MAX_TOTAL_CHARS: Final = 13_200
MAX_VIEW_BYTES: Final = 250_000  # https://docs.slack.dev/reference/methods/views.open
Errors = Iterator[ValidationError]


def check_blocks(blocks: Sequence[JsonObject], surface: Surface) -> None:
    """Raises SlackRefused("invalid_blocks" | "msg_blocks_too_long")."""
    definition = "blocks_message" if surface == "message" else "blocks_modal"
    if problems := _problems(definition, list[JsonValue](blocks), "/blocks"):
        raise SlackRefused("invalid_blocks", problems)
    if sum(map(len, _texts(list[JsonValue](blocks)))) > MAX_TOTAL_CHARS:
        raise SlackRefused("msg_blocks_too_long")


def check_view(view: JsonObject, kind: Literal["modal", "home"]) -> None:
    """Raises SlackRefused("invalid_arguments" | "view_too_large")."""
    if len(orjson.dumps(view)) > MAX_VIEW_BYTES:
        raise SlackRefused("view_too_large")
    if problems := _problems(kind, view, "/view"):
        raise SlackRefused("invalid_arguments", problems)


def check_chunks(chunks: JsonValue) -> None:
    """Raises SlackRefused("invalid_chunks")."""
    if problems := _problems("chunks", chunks, "/chunks"):
        raise SlackRefused("invalid_chunks", problems)


def options_of(menu: JsonObject) -> list[JsonObject]:
    """Every option of a menu, also of one in groups."""
    grouped = [objects_at(group, "options") for group in objects_at(menu, "option_groups")]
    return [*objects_at(menu, "options"), *(option for group in grouped for option in group)]


def in_words(error: ValidationError, at: str) -> Iterator[str]:
    """What is wrong and where, as Slack writes it."""
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
        yield from in_words(each, at)


def _member(error: ValidationError) -> str:
    return str(error.relative_path[0]) if error.relative_path else ""


def _more(limit: object, by: int) -> int:
    return limit + by if isinstance(limit, int) else by


def _problem(what: str, pointer: str) -> str:
    return f"[ERROR] {what} [json-pointer:{pointer}]"


def _unique_by(_: Validator, name: str, value: JsonValue, __: JsonObject) -> Errors:
    counts = Counter(text_at(each, name) for each in objects_at({"": value}, ""))
    for repeated in (found for found, count in counts.items() if found and count > 1):
        yield ValidationError(f"{name} {repeated} already exists")


def _max_text(_: Validator, limits: dict[str, int], value: JsonValue, __: JsonObject) -> Errors:
    for kind, limit in limits.items():
        blocks = [each for each in objects_at({"": value}, "") if each.get("type") == kind]
        counted: JsonValue = list[JsonValue](blocks) if kind else value
        if sum(map(len, _texts(counted))) > limit:
            yield ValidationError(f"must be less than {limit + 1} characters {kind}".rstrip())


def _same_lengths(_: Validator, __: bool, rows: JsonValue, ___: JsonObject) -> Errors:
    listed = rows if isinstance(rows, list) else []
    if len({len(row) for row in listed if isinstance(row, list)}) > 1:
        yield ValidationError("all rows must have the same number of cells")


def _menu(validator: Validator, _: bool, menu: JsonObject, schema: JsonObject) -> Errors:
    options = options_of(menu)
    yield from _unique_by(validator, "value", list[JsonValue](options), schema)
    initial = object_at(menu, "initial_option")
    if initial and text_at(initial, "value") not in [text_at(each, "value") for each in options]:
        yield ValidationError("must be one of the options", path=["initial_option"])


def _point_per_category(_: Validator, __: bool, chart: JsonObject, ___: JsonObject) -> Errors:
    categories = object_at(chart, "axis_config").get("categories")
    listed = sorted(map(str, categories)) if isinstance(categories, list) else []
    for index, each in enumerate(objects_at(chart, "series")):
        if sorted(text_at(point, "label") for point in objects_at(each, "data")) != listed:
            words = "data must have one point for each category"
            yield ValidationError(words, path=["series", index, "data"])


_SlackValidator: Final[type[Validator]] = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "uniqueBy": _unique_by,
        "maxText": _max_text,
        "sameLengths": _same_lengths,
        "menu": _menu,
        "pointPerCategory": _point_per_category,
    },
)
# Read once, at import: checks run on the event loop.
_SCHEMA: Final = orjson.loads(
    resources.files(__package__).joinpath("block_kit.schema.json").read_bytes()
)


@cache
def _validator(definition: str) -> Validator:
    return _SlackValidator({"$ref": f"#/$defs/{definition}", **_SCHEMA})


def _problems(definition: str, value: JsonValue, at: str) -> list[str]:
    errors = _validator(definition).iter_errors(value)
    return [words for error in errors for words in in_words(error, at)]


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
