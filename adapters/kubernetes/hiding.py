"""Mask the values of an object that hold secrets in practice.

Environment values, ConfigMap data and annotations that are not known to be harmless: no rule can
detect which of them is a password.
"""

import re
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

HIDDEN: Final = "[hidden]"
MAX_TEXT_CHARS: Final = 1000
_MAX_DEPTH: Final = 40
_DROPPED: Final = frozenset({"managedFields", "selfLink", "resourceVersion"})
# Written by Kubernetes itself, and needed to understand a rollout.
_SHOWN_ANNOTATIONS: Final = frozenset(
    {
        "deployment.kubernetes.io/revision",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/revision-history",
        "kubectl.kubernetes.io/restartedAt",
        "kubernetes.io/change-cause",
        "kubernetes.io/config.source",
        "prometheus.io/port",
        "prometheus.io/scrape",
    }
)
_DATA: Final = frozenset({"data", "binaryData", "stringData"})
_FLAG: Final = re.compile(r"(?i)(--?[\w.-]*(?:pass|secret|token|key|cred|auth)[\w.-]*[= ])\S+")
_USERINFO: Final = re.compile(r"(\w+://)[^\s/@]+@")


def shown(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A copy without what may not be shown."""
    return {
        key: _shown(key, item, 0)
        for key, item in value.items()
        if key not in _DROPPED and key not in _DATA
    } | {key: _sizes(value[key]) for key in sorted(_DATA & value.keys())}


def shown_text(text: str) -> str:
    """A command line, an event or a log line without credentials in URLs and flags."""
    return _FLAG.sub(rf"\1{HIDDEN}", _USERINFO.sub(rf"\1{HIDDEN}@", text))


def _shown(key: str, value: JsonValue, depth: int) -> JsonValue:
    if depth > _MAX_DEPTH:
        return HIDDEN
    if isinstance(value, dict):
        if key == "annotations":
            return {n: _annotation(n, v) for n, v in value.items() if not _is_last_applied(n)}
        return {n: _shown(n, v, depth + 1) for n, v in value.items() if n not in _DROPPED}
    if isinstance(value, list):
        if key == "env":
            return [_environment(item) for item in value]
        if key in {"command", "args"}:
            return _command([str(item) for item in value])
        return [_shown("", item, depth + 1) for item in value]
    return shown_text(value)[:MAX_TEXT_CHARS] if isinstance(value, str) else value


def _environment(variable: JsonValue) -> JsonValue:
    """The name stays, and where the value comes from; never the value."""
    if not isinstance(variable, dict):
        return HIDDEN
    return {key: HIDDEN if key == "value" else item for key, item in variable.items()}


def _command(words: list[str]) -> list[JsonValue]:
    """`--password secret` in two words is one secret too; scripts in one word are cut."""
    found: list[JsonValue] = []
    hide_next = False
    for word in words:
        is_flag = word.startswith("-")
        found.append(HIDDEN if hide_next and not is_flag else shown_text(word)[:MAX_TEXT_CHARS])
        hide_next = is_flag and _FLAG.fullmatch(f"{word} x") is not None
    return found


def _annotation(name: str, value: JsonValue) -> JsonValue:
    return value if name in _SHOWN_ANNOTATIONS else HIDDEN


def _is_last_applied(name: str) -> bool:
    return name == "kubectl.kubernetes.io/last-applied-configuration"


def _sizes(data: JsonValue) -> JsonValue:
    if not isinstance(data, dict):
        return HIDDEN
    return {key: f"{HIDDEN} {len(str(value))} characters" for key, value in data.items()}
