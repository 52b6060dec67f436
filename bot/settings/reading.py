"""Read kortex.toml: interpolate the environment, validate, and say where an error is.

The only module that reads the environment.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from bot.settings.model import ChannelSettings, Settings

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_MAX_CONFIG_BYTES = 1_000_000  # a configuration is a page; more is a mistake or an attack


class ConfigurationError(Exception):
    """The configuration cannot be used. The message names file, line and key."""


def environment() -> Mapping[str, str]:
    """The process environment, read here and passed on."""
    return os.environ  # noqa: TID251 - the one place


def load(path: Path, env: Mapping[str, str] | None = None) -> Settings:
    """Read and validate a file. Raises ConfigurationError; has no other effect."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(
            f"{path}: no such file. Copy docs/kortex.example.toml and fill it in, "
            "or try `kortex demo`, which needs none."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from error
    if len(raw) > _MAX_CONFIG_BYTES:
        raise ConfigurationError(f"{path}: larger than {_MAX_CONFIG_BYTES} bytes")
    known = environment() if env is None else env
    return parse(raw.decode("utf-8", errors="replace"), str(path), known)


def parse(text: str, name: str, env: Mapping[str, str]) -> Settings:
    """Validate TOML text. Raises ConfigurationError."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name}: not valid TOML: {error}") from error
    filled = _interpolate(tree, env)
    try:
        settings = Settings.model_validate(filled)
    except ValidationError as error:
        raise ConfigurationError(_explain(error, text, name)) from None
    _check_references(settings, text, name)
    return settings


def _interpolate(value: object, env: Mapping[str, str]) -> object:
    match value:
        case str():
            return _REFERENCE.sub(lambda m: _lookup(m, env), value)
        case dict():
            return {k: _interpolate(v, env) for k, v in value.items()}
        case list():
            return [_interpolate(v, env) for v in value]
        case _:
            return value


def _lookup(match: re.Match[str], env: Mapping[str, str]) -> str:
    """A missing variable is empty: a missing key marks its user unavailable, not the bot broken."""
    return env.get(match[1], "").strip() or match[2] or ""


def _explain(error: ValidationError, text: str, name: str) -> str:
    lines = []
    for item in error.errors(include_url=False, include_input=False)[:20]:
        path = [str(part) for part in item["loc"]]
        what = "unknown key" if item["type"] == "extra_forbidden" else item["msg"]
        lines.append(f"{name}:{line_of(text, path)}: {'.'.join(path)}: {what}")
    return "\n".join(lines)


def line_of(text: str, path: list[str]) -> int:
    """The line (from 1) where a key is set, or its table begins, or 1."""
    keys = [p for p in path if not p.isdigit()]
    index = next((int(p) for p in path if p.isdigit()), 0)
    best, table, seen = 1, "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        header = re.match(r"^\[\[?([^\]]+)\]\]?", stripped)
        if header:
            table = header[1].strip().replace('"', "")
            seen += stripped.startswith("[[") and table == keys[0]
            if ".".join(keys).startswith(table) and (
                not stripped.startswith("[[") or seen == index + 1
            ):
                best = number
            continue
        key = stripped.split("=", 1)[0].strip().strip('"')
        full = f"{table}.{key}" if table else key
        in_entry = seen == 0 or table != keys[0] or seen == index + 1
        if key and in_entry and ".".join(keys).startswith(full):
            best = number
            if full == ".".join(keys):
                return number
    return best


def _check_references(settings: Settings, text: str, name: str) -> None:
    """Names that point at nothing: a role nobody defined would silently deny for ever."""
    problems: list[str] = []
    for index, channel in enumerate(settings.channels):
        problems += _unknown_roles(settings, channel, index, text, name)
    for index, action in enumerate(settings.actions):
        problems += [
            f"{name}:{line_of(text, ['actions', str(index), 'confirm'])}: actions.confirm: "
            f"role {role!r} is not defined; add [roles.{role}]"
            for role in action.confirm
            if role not in settings.roles
        ]
    problems += [
        f"{name}:{line_of(text, ['admins', 'roles'])}: admins.roles: role {role!r} is not defined"
        for role in settings.admins.roles
        if role not in settings.roles
    ]
    names = [a.name for a in settings.actions]
    problems += [
        f"{name}: actions: {n!r} is declared twice"
        for n in sorted({n for n in names if names.count(n) > 1})
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))


def _unknown_roles(
    settings: Settings, channel: ChannelSettings, index: int, text: str, name: str
) -> list[str]:
    return [
        f"{name}:{line_of(text, ['channels', str(index), 'confirm'])}: channels.confirm: "
        f"role {role!r} is not defined; add [roles.{role}]"
        for role in channel.confirm
        if role not in settings.roles
    ]
