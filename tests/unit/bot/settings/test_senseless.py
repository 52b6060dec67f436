"""Every number and duration of kortex.toml: a senseless one is refused by its line, any other works."""

import asyncio
import re
import tomllib
import types
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from bot.app import rules
from bot.cli.ask import ask_with
from bot.settings.model import Settings
from bot.settings.named_backends import NAMED
from bot.settings.reading import ConfigurationError, parse
from bot.settings.section import LONGEST

Path = tuple[str, ...]

# What a table needs beside the field, and the names of entries of nested tables.
ENTRIES = {
    "adapters": "tickets", "llm.providers": "openai", "llm.models": "m", "llm.tools": "get_logs", "mcp.servers": "time",
    "observe.metrics.signals": "shop_queue", "policy.toolsets": "investigate", "roles": "sre",
    "workspaces": "T0123456789", "deploys": "shop",
}  # fmt: skip
NEEDED = {
    "llm.models.m.usd_per_mtok": "input = 1\noutput = 1",
    "observe.metrics.signals.shop_queue": "role = 'queue'",
    "mcp.servers.time": "command = ['x']",
    "roles.sre.oncall": "kind = 'json'\nurl = 'http://rota/'\npath = '[]'",
    "adapters.tickets": "url = 'http://tickets:8080'",
    "deploys.shop": "kind = 'github'\nprojects = ['shop/checkout']",
    "channels": "match = '*'",
    "alerts": "name = 'a'\nchannel = 'C0123456789'",
    "actions": "name = 'a'\ndescription = 'd'",
    "actions.endpoint": "kind = 'rehearsal'",
}
LISTS = {"alerts", "channels", "actions"}


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types within optional, annotated and union ones."""
    if get_origin(annotation) is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for each in get_args(annotation):
            yield from _kinds(each)
    else:
        yield annotation


def _fields(model: type[BaseModel], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number and duration below, with the field that declares it."""
    for name, field in model.model_fields.items():
        if name == NAMED:  # the table's own fields once more
            continue
        here = (*path, name)
        for kind in _kinds(field.annotation):
            if kind in (int, float, timedelta):
                yield here, field
            elif isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _fields(kind, here)
            elif get_origin(kind) in (dict, tuple):
                inner = next(_kinds(get_args(kind)[-1 if get_origin(kind) is dict else 0]))
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    entry = ENTRIES.get(".".join(here))
                    yield from _fields(inner, (*here, entry) if entry else here)


FIELDS = dict(_fields(Settings))


def _header(table: Path) -> str:
    """`[llm.budget]`, `[[channels]]`, with what an entry needs to be one."""
    name = ".".join(table)
    brackets = f"[[{name}]]" if name in LISTS else f"[{name}]"
    return "\n".join(filter(None, (brackets, NEEDED.get(name, ""))))


def toml_of(path: Path, value: str) -> str:
    """A configuration with that field, which is its last line."""
    table, text = path[:-1], ""
    if table[0] == "actions" and len(table) == 1:
        return f"{_header(table)}\nendpoint = {{ kind = 'rehearsal' }}\n{path[-1]} = {value}\n"
    if table[0] == "actions":
        text = _header(table[:1]) + "\n"
    lines = [line for line in _header(table).splitlines() if not line.startswith(f"{path[-1]} ")]
    return text + "\n".join((*lines, f"{path[-1]} = {value}")) + "\n"


ODD = st.sampled_from(
    ["-1", "0", "-0.0", "inf", "-inf", "nan", "1e400", "-1e400", "1e308", "1e-400", "true", "[]",
     "{}", '""', '"0s"', '"-5s"', '"0.0001ms"', '"99999999999999d"', '"1e9s"', '"inf"', '"nans"',
     f'"{"9" * 400}d"', "9" * 30, "9" * 5_000, "1979-05-27", '"366d"', '"367d"', '"1ms"', "0.001"]
)  # fmt: skip
VALUES = (
    ODD | st.integers().map(str) | st.integers(-(10**30), 10**30).map(str) | st.floats().map(repr)
)


def _numbers(value: object) -> Iterator[float | timedelta]:
    match value:
        case bool() | str() | SecretStr():
            return
        case int() | float() | timedelta():
            yield value
        case BaseModel():
            for name in type(value).model_fields:
                yield from _numbers(getattr(value, name))
        case dict():
            for item in value.values():
                yield from _numbers(item)
        case tuple():
            for item in value:
                yield from _numbers(item)
        case _:
            return


def _makes_sense(number: float | timedelta) -> bool:
    if isinstance(number, timedelta):
        return timedelta(0) < number <= LONGEST
    return 0 <= number < 2**53


def _read(text: str) -> tuple[str, Settings]:
    """Why it is refused, or what it says."""
    try:
        return "", parse(text, "k.toml", {})
    except ConfigurationError as error:
        return str(error), Settings()


@pytest.mark.parametrize("path", FIELDS, ids=".".join)
@settings(max_examples=25)
@given(value=VALUES)
def test_an_invalid_value_is_refused_by_file_line_and_key(path: Path, value: str) -> None:
    text = toml_of(path, value)
    line = text.count("\n")
    keys = r"(\.\d+)?\.".join(re.escape(each) for each in path)
    refused, found = _read(text)
    assert re.search(rf"^k\.toml:{line}: {keys}: |k\.toml: no|^$", refused, re.MULTILINE)
    assert [n for n in _numbers(found) if not _makes_sense(n)] == []
    assert rules.budget_limits(found).daily_usd_micros < 2**53
    assert all(each > 0 for each in rules.tool_timeouts(found).values())


def _bound(field: FieldInfo, *, least: bool) -> object:
    """The smallest or the largest value that is taken."""
    bounds = [m for m in field.metadata if isinstance(m, Ge | Gt | Le)] or [
        Gt(timedelta(0)),
        Le(LONGEST),
    ]
    if least:
        low = bounds[0]
        return low.ge if isinstance(low, Ge) else timedelta(milliseconds=1)
    return min(each.le for each in bounds if isinstance(each, Le))  # type: ignore[type-var]


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(one[0], other[0])]
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **other, **{k: _merged(one[k], other[k]) for k in one.keys() & other.keys()}}
    return other


def _set(tree: Any, path: Path, value: object) -> None:
    for name in path[:-1]:
        tree = tree[name][0] if isinstance(tree[name], list) else tree[name]
    tree[path[-1]] = value


# An MCP server would be started, a limit of objects needs something that counts them, and no tool
# asks the adapter.
ALONE = {
    ("mcp", "servers", "time", "timeout"), ("actions", "max_objects"),
    ("adapters", "tickets", "timeout"), ("adapters", "tickets", "connect_timeout"),
}  # fmt: skip
ALL_AT_ONCE = {path: field for path, field in FIELDS.items() if path not in ALONE}
RECORDED = {"kind": "recorded"}


@pytest.mark.parametrize("least", [True, False], ids=["least", "most"])
def test_a_question_is_answered_with_every_value_at_its_limit(
    least: bool, tmp_path: FilePath, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    tree: Any = {
        "database": {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"},
        "observe": {"logs": RECORDED, "metrics": RECORDED, "traces": RECORDED},
    }
    for path in ALL_AT_ONCE:
        tree = _merged(tree, tomllib.loads(toml_of(path, "1")))
    for path, field in ALL_AT_ONCE.items():
        _set(tree, path, _bound(field, least=least))
    chosen = Settings.model_validate(tree)
    assert asyncio.run(ask_with(chosen, "why is checkout slow?", "incident-x", as_json=True)) in (
        0,
        1,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[llm.tools.get_log]\ntimeout = '3s'",
            "k.toml:1: llm.tools.get_log: no tool has this name",
        ),
        ("[llm.tools.plugin__x]\ntimeout = '3s'", "k.toml:1: llm.tools.plugin__x: no tool"),
        ("[llm.tools.mcp__a__b]\ntimeout = '3s'", "k.toml:1: llm.tools.mcp__a__b: no tool"),
        (
            "[[actions]]\nname = 'a'\ndescription = 'd'\nendpoint = { kind = 'rehearsal' }\n"
            "params_schema = { minimum = nan }",
            "k.toml:5: actions.0.params_schema.minimum",
        ),
        ("a = " + "[" * 5_000, "k.toml: no"),
    ],
)
def test_an_invalid_name_or_nesting_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse(text, "k.toml", {})


@pytest.mark.parametrize("name", ["get_logs", "core__get_logs", "report_findings"])
def test_a_built_in_tool_is_found_by_either_name(name: str) -> None:
    found = parse(f"[llm.tools.{name}]\ntimeout = '3s'", "k.toml", {})
    assert rules.tool_timeouts(found)[name.removeprefix("core__")] == 3.0
