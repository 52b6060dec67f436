"""Which arguments each Web API method takes, and reading them from a request strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import orjson
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from bot.demo.workspace.block_rules import in_words
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, object_at


@dataclass(frozen=True, slots=True)
class Signature:
    """One method: the JSON Schema of its arguments, tier, scope and whether the app-level token calls it.

    `tier` None is the posting rate. Methods that only read take no JSON body
    (https://docs.slack.dev/apis/web-api/: "accepts application/x-www-form-urlencoded").
    """

    arguments: JsonObject
    tier: int | None
    scope: str = ""
    app_level: bool = False
    takes_json: bool = True


# The SDK's per-request client adds `team_id` to every call; Slack lets it pass everywhere.
ALWAYS_ALLOWED = frozenset({"token", "team_id"})
# https://docs.slack.dev/reference/methods. Read once, at import: calls run on the event loop.
# The tier of `agents.sessions.*` is not published; it is taken to be that of similar methods.
_METHODS: Final = orjson.loads(
    resources.files(__package__).joinpath("methods.schema.json").read_bytes()
)
SIGNATURES: Final = {method: Signature(**each) for method, each in _METHODS.items()}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The read arguments of one call; absent ones read as None, empty or False."""

    values: Mapping[str, JsonValue]

    def given(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool:
        return self.values.get(name) is True

    def number(self, name: str, default: int) -> int:
        value = self.values.get(name)
        return int(value) if isinstance(value, int | float) else default

    def json(self, name: str) -> JsonValue:
        return self.values.get(name)


def read_arguments(method: str, sent: JsonObject) -> Arguments:
    """Check names and values. Raises SlackRefused("invalid_arguments") naming every problem."""
    schema = SIGNATURES[method].arguments
    known = object_at(schema, "properties")
    problems = [
        f"[ERROR] unknown argument: {name}"
        for name in sent
        if name not in known and name not in ALWAYS_ALLOWED
    ]
    required = schema.get("required")
    problems += [
        f"[ERROR] missing required field: {name}"
        for name in (required if isinstance(required, list) else [])
        if sent.get(str(name)) in (None, "")
    ]
    values = {
        name: _read(object_at(known, name)["type"], value)
        for name, value in sent.items()
        if name in known and value is not None
    }
    for error in _values(method).iter_errors(values):
        problems += in_words(error, "")
    if problems:
        raise SlackRefused("invalid_arguments", problems)
    return Arguments(values)


@cache
def _values(method: str) -> Draft202012Validator:
    return Draft202012Validator({"properties": SIGNATURES[method].arguments.get("properties", {})})


_FLAGS: Mapping[str, bool] = {"1": True, "true": True, "0": False, "false": False, "": False}


def _read(kind: JsonValue, value: JsonValue) -> JsonValue:
    """The value of its type where a form has it as text; anything else as it is."""
    try:
        match kind:
            case "boolean":
                return _FLAGS.get(str(value).lower(), value)
            case "integer" if isinstance(value, str):
                return int(value)
            case "object" | "array" | ["object", "array"] if isinstance(value, str):
                read: JsonValue = orjson.loads(value)
                return read
    except ValueError:
        pass
    return value
