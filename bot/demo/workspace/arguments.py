"""Which arguments each Web API method takes, and reading them from a request strictly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from typing import Final

import orjson
from pydantic import JsonValue

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject


class Kind(Enum):
    """How a value is written on the wire."""

    TEXT = "a string"
    FLAG = "a boolean"
    NUMBER = "a number"
    JSON = "JSON"  # an object or list; in a form, its text


@dataclass(frozen=True, slots=True)
class Signature:
    """One method: its arguments, tier, scope and whether the app-level token calls it.

    `tier` None is the posting rate. Methods that only read take no JSON body
    (https://docs.slack.dev/apis/web-api/: "accepts application/x-www-form-urlencoded").
    """

    required: Mapping[str, Kind]
    optional: Mapping[str, Kind]
    tier: int | None
    scope: str = ""
    app_level: bool = False
    takes_json: bool = True


# The SDK's per-request client adds `team_id` to every call; Slack lets it pass everywhere.
ALWAYS_ALLOWED = frozenset({"token", "team_id"})


def _signatures() -> Mapping[str, Signature]:
    """`methods.json`: arguments, tiers and scopes by method, as Slack's reference has them.

    The tier of `agents.sessions.*` is not published; it is taken to be that of similar methods.
    """
    found = orjson.loads(resources.files(__package__).joinpath("methods.json").read_bytes())
    return {
        method: Signature(
            **{**each, "required": _kinds(each, "required"), "optional": _kinds(each, "optional")}
        )
        for method, each in found.items()
    }


def _kinds(method: Mapping[str, Mapping[str, Sequence[str]]], need: str) -> Mapping[str, Kind]:
    by_kind = method.get(need, {})
    return {name: Kind[kind.upper()] for kind, names in by_kind.items() for name in names}


# https://docs.slack.dev/reference/methods. Read once, at import: calls run on the event loop.
SIGNATURES: Final = _signatures()


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
        """Read the argument as true or false."""
        return self.values.get(name) is True

    def number(self, name: str, default: int) -> int:
        value = self.values.get(name)
        return int(value) if isinstance(value, int | float) else default

    def json(self, name: str) -> JsonValue:
        return self.values.get(name)


def read_arguments(signature: Signature, sent: JsonObject) -> Arguments:
    """Check names and kinds. Raises SlackRefused("invalid_arguments") naming every problem."""
    kinds = {**signature.required, **signature.optional}
    problems = [
        f"[ERROR] unknown argument: {name}"
        for name in sent
        if name not in kinds and name not in ALWAYS_ALLOWED
    ]
    problems += [
        f"[ERROR] missing required field: {name}"
        for name in signature.required
        if sent.get(name) in (None, "")
    ]
    values: dict[str, JsonValue] = {}
    for name, kind in kinds.items():
        if sent.get(name) is None:
            continue
        try:
            values[name] = _read(kind, sent[name])
        except ValueError:
            problems.append(f"[ERROR] must be {kind.value} [json-pointer:/{name}]")
    if problems:
        raise SlackRefused("invalid_arguments", problems)
    return Arguments(values)


_FLAGS: Mapping[str, bool] = {"1": True, "true": True, "0": False, "false": False, "": False}


def _read(kind: Kind, value: JsonValue) -> JsonValue:
    match kind:
        case Kind.TEXT:
            if isinstance(value, str):
                return value
        case Kind.FLAG:
            if isinstance(value, bool):
                return value
            if str(value).lower() in _FLAGS:
                return _FLAGS[str(value).lower()]
        case Kind.NUMBER:
            if isinstance(value, bool):
                raise ValueError(value)
            if isinstance(value, int | str):
                return int(value)
        case Kind.JSON:
            return _read_json(value)
    raise ValueError(value)


def _read_json(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        value = orjson.loads(value)
    if not isinstance(value, dict | list):
        raise ValueError(value)
    return value
