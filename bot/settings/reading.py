"""Read kortex.toml: interpolate the environment, validate, and say where an error is.

The only module that reads the environment.
"""

import fnmatch
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bot.settings.actions import ActionSettings
from bot.settings.environment import environment
from bot.settings.keys import did_you_mean, line_of
from bot.settings.model import ChannelSettings, Settings
from bot.settings.named_backends import ByName, Family, as_written, chosen_in_vain, clashes
from bot.settings.reflexes import ReflexFile
from bot.settings.section import Section
from bot.settings.variables import Interpolation
from bot.settings.workspace_references import misplaced

_MAX_CONFIG_BYTES = 1_000_000  # a configuration is a page; more is a mistake or an attack


Read = TypeVar("Read", bound=Section)


class ConfigurationError(Exception):
    """The configuration cannot be used. The message names file, line and key."""


@contextmanager
def needing_extra(extra: str, setting: str) -> Iterator[None]:
    """Import an extra's libraries within. A missing one raises ConfigurationError naming the extra."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("bot", "adapters", "tools"):
            raise
        raise ConfigurationError(
            f"{setting}: the extra kortex[{extra}] is not installed. Run `make setup-{extra}`, or "
            f"`pip install --require-hashes -r requirements/{extra}.lock`"
        ) from error


def load(path: Path, env: Mapping[str, str] | None = None) -> Settings:
    """Read and validate a file, and the rules file that it names.

    Raises ConfigurationError; has no other effect.
    """
    text = _text(
        path,
        "`kortex init` writes one; `kortex demo` needs none.",
    )
    known = environment() if env is None else env
    settings = parse(text, str(path), known)
    if not settings.reflexes.file:
        return settings
    return _with_reflexes(settings, path.parent / Path(settings.reflexes.file).expanduser(), known)


def _text(path: Path, advice: str) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file. {advice}") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from error
    if len(raw) > _MAX_CONFIG_BYTES:
        raise ConfigurationError(f"{path}: larger than {_MAX_CONFIG_BYTES} bytes")
    return raw.decode("utf-8", errors="replace")


def _with_reflexes(settings: Settings, path: Path, env: Mapping[str, str]) -> Settings:
    text = _text(path, "[reflexes] file names it; see docs/reflexes.example.toml.")
    read = _validated(ReflexFile, text, str(path), env)
    rules = tuple(r.as_action() for r in read.reflexes)
    names = [a.name for a in settings.actions]
    problems = _unknown_action_roles(settings, rules, "reflexes", text, str(path))
    for index, rule in enumerate(rules):
        if rule.name in names:
            line = line_of(text, ["reflexes", str(index), "name"])
            problems.append(f"{path}:{line}: reflexes.name: {rule.name!r} is declared twice")
        names.append(rule.name)
    if problems:
        raise ConfigurationError("\n".join(problems))
    whole = settings.model_copy(update={"actions": (*settings.actions, *rules)})
    whole.remember((*settings.unset, *read.unset))
    return whole


def parse(text: str, name: str, env: Mapping[str, str]) -> Settings:
    """Validate TOML text. Raises ConfigurationError."""
    settings = _validated(Settings, text, name, env)
    _check_references(settings, text, name)
    return settings


def _validated(shape: type[Read], text: str, name: str, env: Mapping[str, str]) -> Read:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name}: not valid TOML: {error}") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, brackets without end
        raise ConfigurationError(f"{name}: not readable as TOML ({error})") from error
    variables = Interpolation(env)
    try:
        read = shape.model_validate(variables.fill(tree))
    except ValidationError as error:
        raise ConfigurationError(_explain(error, shape, text, name)) from None
    read.remember(variables.unset())
    return read


def _explain(error: ValidationError, shape: type[Section], text: str, name: str) -> str:
    lines = []
    for item in error.errors(include_url=False, include_input=False)[:20]:
        path = [str(part) for part in item["loc"]]
        unknown = item["type"] == "extra_forbidden"
        what = f"unknown key{did_you_mean(shape, path)}" if unknown else _words(item)
        path = as_written(path)
        lines.append((line_of(text, path), f"{'.'.join(path)}: {what}"))
    return "\n".join(f"{name}:{line}: {what}" for line, what in sorted(lines))


def _words(item: ErrorDetails) -> str:
    if item["type"] == "literal_error":
        return f"must be {item['ctx']['expected']}"
    return item["msg"].removeprefix("Value error, ")


def _check_references(settings: Settings, text: str, name: str) -> None:
    """Names without a target: an undefined role would silently deny for ever."""
    problems: list[str] = []
    for index, channel in enumerate(settings.channels):
        problems += _unknown_roles(settings, channel, index, text, name)
        problems += _unknown_backends(settings, channel, index, text, name)
    problems += _unknown_action_roles(settings, settings.actions, "actions", text, name)
    problems += _chosen_twice(settings, text, name)
    problems += [
        f"{name}:{line_of(text, ['admins', 'roles'])}: admins.roles: role {role!r} is not defined"
        for role in settings.admins.roles
        if role not in settings.roles
    ]
    problems += _unknown_claimed_roles(settings, text, name)
    problems += _unknown_tools(settings, text, name)
    problems += _denied_in_vain(settings, text, name)
    problems += _frozen_in_vain(settings, text, name)
    problems += misplaced(settings, text, name)
    named = {"actions": [a.name for a in settings.actions]}
    named["alerts"] = [a.name for a in settings.alerts]
    problems += [
        f"{name}: {table}: {n!r} is declared twice"
        for table, names in named.items()
        for n in sorted({n for n in names if names.count(n) > 1})
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))


def _unknown_tools(settings: Settings, text: str, name: str) -> list[str]:
    if not settings.llm.tools:
        return []
    from tools.core.all import built_in_toolsets  # reads every tool: only where one is named

    ids = {each for toolset in built_in_toolsets().values() for each in toolset}
    known = ids | {each.removeprefix("core__") for each in ids}
    if settings.plugins.folder:
        known |= {each for each in settings.llm.tools if each.startswith("plugin__")}
    for server, own in settings.mcp.servers.items():
        known |= {f"mcp__{server}__{tool}" for tool in own.tools}
    return [
        f"{name}:{line_of(text, ['llm', 'tools', each])}: llm.tools.{each}: no tool has this name; "
        "`kortex tools` shows them, a plugin's is plugin__NAME, a server's mcp__SERVER__TOOL"
        for each in settings.llm.tools
        if each not in known
    ]


def _denied_in_vain(settings: Settings, text: str, name: str) -> list[str]:
    denied = [each for each in settings.policy.denied if not each.startswith(("plugin__", "mcp__"))]
    if not denied:
        return []
    from tools.core.all import built_in_toolsets  # reads every tool: only where one is named

    ids = {each for toolset in built_in_toolsets().values() for each in toolset}
    ids |= {"plugin__", "mcp__"}  # a glob such as *__delete* may mean theirs
    return [
        f"{name}:{line_of(text, ['policy', 'denied'])}: policy.denied: {each!r} is not a tool's "
        "id, so it denies nothing; `kortex tools` shows the ids, such as core__get_logs"
        for each in denied
        if "*" not in each.split("__")[0] and not fnmatch.filter(ids, each)
    ]


def _frozen_in_vain(settings: Settings, text: str, name: str) -> list[str]:
    actions = [action.name for action in settings.actions]
    if settings.reflexes.file:  # its rules are actions too, and not read yet
        return []
    return [
        f"{name}:{line_of(text, ['freeze', 'windows', str(index), 'actions'])}: "
        f"freeze.windows.actions: {each!r} is not a declared action, so it freezes nothing"
        for index, window in enumerate(settings.freeze.windows)
        for each in window.actions
        if not fnmatch.filter(actions, each) and each != "*"
    ]


def _unknown_roles(
    settings: Settings, channel: ChannelSettings, index: int, text: str, name: str
) -> list[str]:
    return [
        f"{name}:{line_of(text, ['channels', str(index), key])}: channels.{key}: "
        f"role {role!r} is not defined; add [roles.{role}]"
        for key, roles in (("confirm", channel.confirm), ("ask", channel.ask))
        for role in roles
        if role not in settings.roles
    ]


def _unknown_claimed_roles(settings: Settings, text: str, name: str) -> list[str]:
    return [
        f"{name}:{line_of(text, ['oidc', 'roles', claimed])}: oidc.roles.{claimed}: "
        f"role {role!r} is not defined; add [roles.{role}]"
        for claimed, role in settings.oidc.roles.items()
        if role not in settings.roles
    ]


def _unknown_backends(
    settings: Settings, channel: ChannelSettings, index: int, text: str, name: str
) -> list[str]:
    observe = settings.observe
    named: dict[Family, Mapping[str, ByName]] = {
        "logs": observe.logs.named,
        "metrics": observe.metrics.named,
        "traces": observe.traces.named,
        "errors": observe.errors.named,
    }
    return [
        f"{name}:{line_of(text, ['channels', str(index), 'backends'])}: channels.backends: {why}"
        for why in chosen_in_vain(channel.backends, named)
    ]


def _chosen_twice(settings: Settings, text: str, name: str) -> list[str]:
    observe = settings.observe
    found = [
        *clashes("observe.logs", observe.logs.named),
        *clashes("observe.metrics", observe.metrics.named),
        *clashes("observe.traces", observe.traces.named),
        *clashes("observe.errors", observe.errors.named),
    ]
    return [f"{name}:{line_of(text, path)}: {'.'.join(path)}: {what}" for path, what in found]


def _unknown_action_roles(
    settings: Settings, actions: Sequence[ActionSettings], table: str, text: str, name: str
) -> list[str]:
    guards = ["guards"] if table == "reflexes" else []
    return [
        f"{name}:{line_of(text, [table, str(index), *guards, 'confirm'])}: {table}.confirm: "
        f"role {role!r} is not defined; add [roles.{role}]"
        for index, action in enumerate(actions)
        for role in action.confirm
        if role not in settings.roles
    ]
