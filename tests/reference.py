"""The generated pages of docs/reference, made from the code: `python -m tests.reference` writes them."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from prometheus_client.metrics import MetricWrapperBase

from bot.app.rules import TOOLSETS
from bot.cli.main import TABLE, kortex
from bot.settings.model import Settings
from bot.telemetry.levels import Levels
from bot.telemetry.metrics import Metrics
from bot.web.api.document import document
from bot.web.api.proposals import Deciding
from bot.web.api.reports import Reports
from bot.web.api.sessions import Conversations
from tests.sources import ROOT
from tools.core.all import core_tools
from tools.cursor import CursorSigner

FOLDER: Final = ROOT / "docs" / "reference"
EXAMPLE: Final = ROOT / "docs" / "kortex.example.toml"
MADE: Final = (
    "<!-- Generated from the code by `make reference`. Change the code, not this page. -->"
)
HEADER: Final = re.compile(r"^(?:# )?\[+([^\]]+)\]+ *(?:# (.*))?$")
KEY: Final = re.compile(r"^(?:# )?([a-z_0-9]+) += .*?  +# (.*)$")
DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?")

Json = Mapping[str, Any]


def settings() -> str:
    """Every key of kortex.toml with its type, its default and the example's comment."""
    schema = Settings.model_json_schema()
    comments = _comments(EXAMPLE.read_text(encoding="utf-8"))
    lines = [
        "# Settings",
        "",
        "Every key of `kortex.toml`. Unknown keys are refused. `NAME` is a name that you choose.",
        "[kortex.example.toml](../kortex.example.toml) shows the same keys as one file.",
    ]
    shown: dict[str, Mapping[str, Json]] = {}
    for name, keys in _tables(schema, "", schema, frozenset()):
        unnamed = name.replace(".NAME", "", 1)
        own = {key: each for key, each in keys.items() if key not in shown.get(unnamed, {})}
        if not own:
            continue
        written = f"[[{name[:-2]}]]" if name.endswith("[]") else f"[{name}]"
        lines += ["", f"## `{written}`", ""]
        if len(own) < len(keys):
            lines += [f"The keys of `[{unnamed}]`, and:", ""]
        lines += ["| key | type | default | |", "|---|---|---|---|"]
        lines += [_setting(name, key, each, schema, comments) for key, each in own.items()]
        shown[name] = keys
    return _page(lines)


def _comments(text: str) -> Mapping[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    table = ""
    for line in text.splitlines():
        if header := HEADER.match(line):
            table = header[1]
        elif key := KEY.match(line):
            found.setdefault((table, key[1]), key[2])
    return found


def _tables(
    schema: Json, name: str, root: Json, seen: frozenset[str]
) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Each table by its name, with its keys that are no tables; the tables below it follow."""
    below: list[tuple[str, Json]] = []
    keys: dict[str, Json] = {}
    for key, each in schema.get("properties", {}).items():
        # The models hold `[observe.logs.NAME]` under `named`, which is no key of the file.
        path = name if key == "named" else f"{name}.{key}" if name else key
        inner = _table_of(each, path, root)
        if inner is None or inner[1] in seen:
            keys[key] = each
        else:
            below.append((inner[0], root["$defs"][inner[1]]))
    if keys:
        yield name, keys
    for path, each in below:
        yield from _tables(each, path, root, seen | {each.get("title", "")})


def _table_of(each: Json, path: str, root: Json) -> tuple[str, str] | None:
    """The path and the name of the model that a key holds: one, a list, or one for each name."""
    if "$ref" in each:
        found, suffix = each["$ref"], ""
    elif "$ref" in each.get("items", {}):
        found, suffix = each["items"]["$ref"], "[]"
    else:
        values = [each.get("additionalProperties"), *each.get("patternProperties", {}).values()]
        models = [one["$ref"] for one in values if isinstance(one, dict) and "$ref" in one]
        found, suffix = next(iter(models), ""), ".NAME"
    model = found.rpartition("/")[2]
    return (path + suffix, model) if "properties" in root["$defs"].get(model, {}) else None


def _setting(
    table: str, key: str, each: Json, root: Json, comments: Mapping[tuple[str, str], str]
) -> str:
    wanted = re.escape(table.replace("[]", "")).replace("NAME", r'(?:[\w-]+|"[^"]+")')
    said = next(
        (c for (at, name), c in comments.items() if name == key and re.fullmatch(wanted, at)), ""
    )
    return _row(f"`{key}`", _type(each, root), _default(each), _markdown(said))


def _type(each: Json, root: Json) -> str:
    if "$ref" in each:
        return _type(root["$defs"][each["$ref"].rpartition("/")[2]], root)
    if "enum" in each:
        return ", ".join(f"`{json.dumps(value)}`" for value in each["enum"])
    if "anyOf" in each:
        kinds = dict.fromkeys(_type(one, root) for one in each["anyOf"] if one != {"type": "null"})
        return " or ".join(kinds)
    if each.get("type") == "array":
        return f"list of {_type(each.get('items', {}), root)}"
    if each.get("type") == "object":
        return "table"
    return str(each.get("format") or each.get("const") or each.get("type", "any value"))


def _default(each: Json) -> str:
    if "default" not in each:
        return ""
    value = each["default"]
    if each.get("format") == "duration" and (parts := DURATION.fullmatch(str(value))):
        return (
            "`" + "".join(f"{n}{u}" for n, u in zip(parts.groups(), "dhms", strict=True) if n) + "`"
        )
    return f"`{json.dumps(value)}`" if value not in (None, "") else "empty"


def command_line() -> str:
    """The help of every command, as `--help` prints it."""
    lines = ["# Command line", "", "`kortex --help` and the help of each command.", ""]
    lines += _help(kortex, "kortex")
    for name in TABLE:
        command = kortex.get_command(click.Context(kortex), name)
        assert command is not None
        lines += _help(command, f"kortex {name}")
        subcommands = command.commands if isinstance(command, click.Group) else {}
        for below, each in subcommands.items():
            lines += _help(each, f"kortex {name} {below}")
    return _page(lines)


def _help(command: click.Command, path: str) -> list[str]:
    context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100)
    return [f"## `{path}`", "", "```", *command.get_help(context).splitlines(), "```", ""]


def http_api() -> str:
    """Every operation, its body, its answer and the events of a stream."""
    # What an operation declares needs none of the parts that it is served with.
    described = document(
        [
            *Conversations.__new__(Conversations).operations(),
            *Deciding.__new__(Deciding).operations(),
            *Reports.__new__(Reports).operations(),
        ]
    )
    lines = [
        "# HTTP API",
        "",
        "Each operation takes a bearer token. [The guide](../api.md) says how to get one.",
        "Kortex serves this description as OpenAPI 3.1 at `/api/v1/openapi.json`.",
        "",
        "| operation | | body | answer |",
        "|---|---|---|---|",
    ]
    for path, methods in described["paths"].items():
        for method, each in methods.items():
            body = _model(each.get("requestBody", {}))
            answers = [_model(each["responses"][s]) for s in each["responses"] if s < "300"]
            call = f"`{method.upper()} {path}`"
            lines.append(_row(call, each["summary"], body, ", ".join(filter(None, answers))))
    schemas = described["components"]["schemas"]
    for name in sorted(schemas):
        if "properties" in schemas[name]:
            lines += ["", f"## {name}", "", "| field | type | required |", "|---|---|---|"]
            lines += _fields(schemas[name])
    return _page(lines)


def _model(described: Json) -> str:
    refs = re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(described))
    return ", ".join(f"[{name}](#{name.lower()})" for name in dict.fromkeys(refs))


def _fields(schema: Json) -> list[str]:
    required = schema.get("required", ())
    return [
        _row(f"`{key}`", _field_type(each), "yes" if key in required else "")
        for key, each in schema["properties"].items()
    ]


def _field_type(each: Json) -> str:
    if "$ref" in each:
        name = each["$ref"].rpartition("/")[2]
        return f"`{name}`"
    if "anyOf" in each or "oneOf" in each:
        return " or ".join(dict.fromkeys(map(_field_type, each.get("anyOf") or each["oneOf"])))
    if "enum" in each:
        return ", ".join(f"`{json.dumps(value)}`" for value in each["enum"])
    if each.get("type") == "array":
        return f"list of {_field_type(each.get('items', {}))}"
    return str(each.get("const") or each.get("format") or each.get("type", "any value"))


def tools() -> str:
    """Every built-in tool: what the model reads of it, its limits and its arguments."""
    lines = [
        "# Built-in tools",
        "",
        "What the model reads about each tool. [Tools](../tools.md) has backends and settings.",
    ]
    for tool in core_tools(CursorSigner(b"k" * 32)):
        contract = tool.contract
        toolsets = [name for name, ids in TOOLSETS.items() if contract.id in ids]
        times = contract.timeouts
        lines += ["", f"## `{contract.id}`", "", *textwrap.wrap(contract.description, 110), ""]
        lines += [
            f"Effect `{contract.effect}`. Timeout {times.default_s:g} s, at most "
            f"{times.ceiling_s:g} s. Toolsets: {', '.join(f'`{name}`' for name in toolsets)}."
        ]
        schema = contract.input.model_json_schema()
        if schema.get("properties"):
            lines += ["", "| argument | type | required | |", "|---|---|---|---|"]
            lines += [
                _row(
                    f"`{key}`",
                    _type(each, schema),
                    "yes" if key in schema.get("required", ()) else "",
                    _markdown(each.get("description", "")),
                )
                for key, each in schema["properties"].items()
            ]
    return _page(lines)


def metrics() -> str:
    """Every metric that `/metrics` shows, with its type and labels."""
    registry = Metrics().registry
    Levels(registry)
    lines = [
        "# Metrics",
        "",
        "What `/metrics` shows beside the process's own `process_*` and `python_info`.",
        "[Watch Kortex](../watching.md) has the alerts and dashboards that use them.",
        "",
        "| metric | type | labels | |",
        "|---|---|---|---|",
    ]
    for collector in registry._collector_to_names:
        if isinstance(collector, MetricWrapperBase):
            (family,) = collector.describe()
            suffix = "_total" if family.type == "counter" else ""
            labels = ", ".join(f"`{label}`" for label in collector._labelnames)
            name = f"`{family.name}{suffix}`"
            lines.append(_row(name, family.type, labels, _markdown(family.documentation)))
    return _page(lines)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _markdown(text: str) -> str:
    """Plain text for a cell: what Markdown would read as markup stays what was written."""
    return re.sub(r"([\[\]<>*_])", r"\\\1", " ".join(text.split()))


def _page(lines: Sequence[str]) -> str:
    return "\n".join([lines[0], "", MADE, *lines[1:]]).rstrip() + "\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "settings.md": settings,
    "command-line.md": command_line,
    "http-api.md": http_api,
    "tools.md": tools,
    "metrics.md": metrics,
}


def main(folder: Path = FOLDER) -> None:
    """Write every page again."""
    for name, made in PAGES.items():
        (folder / name).write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main()
