"""The allowlist of output fields: what is not listed is dropped.

Paths are dotted, `[]` steps into list elements: `lines[].message`. A path that ends at a container
keeps all of it (`series[].labels`). `root.children[]...` says that each child repeats the shape of
the object that holds it, for trees.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

_REPEAT = "..."
_STEP = re.compile(r"([^\[\].]+)((?:\[\])*)")


class AllowlistInvalid(ValueError):
    """A path is empty or malformed."""


@dataclass(slots=True)
class _Node:
    keep_all: bool = False
    fields: dict[str, "_Node"] = field(default_factory=dict)
    element: "_Node | None" = None


class Allowlist:
    """Compiled paths. Raises AllowlistInvalid when there are none, or one is malformed."""

    __slots__ = ("_root",)

    def __init__(self, paths: Iterable[str]) -> None:
        self._root = _Node()
        ordered = sorted(paths)
        if not ordered:
            raise AllowlistInvalid("the redaction allowlist is empty")
        for path in ordered:
            if path.endswith(_REPEAT):
                _add_repeat(self._root, path.removesuffix(_REPEAT))
            else:
                _walk(self._root, path, path).keep_all = True

    def apply(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """A copy that holds only what is listed."""
        return _kept_fields(value, self._root)


def _add_repeat(root: _Node, path: str) -> None:
    """Let the elements of the list at `path` have the shape of the object that holds the list."""
    parent, _, last = path.rpartition(".")
    if not last.endswith("[]") or "[]" in last[:-2]:
        raise AllowlistInvalid(f"a repeat must end in one list: {path!r}")
    holder = _walk(root, parent, path) if parent else root
    _walk(holder, last[:-2], path).element = holder


def _walk(node: _Node, steps: str, path: str) -> _Node:
    for step in steps.split("."):
        match = _STEP.fullmatch(step)
        if match is None:
            raise AllowlistInvalid(f"malformed redaction path {path!r}")
        node = node.fields.setdefault(match[1], _Node())
        for _ in range(len(match[2]) // 2):
            node.element = node.element or _Node()
            node = node.element
    return node


def _kept_fields(value: dict[str, JsonValue], node: _Node) -> dict[str, JsonValue]:
    kept: dict[str, JsonValue] = {}
    for key, item in value.items():
        rule = node.fields.get(key)
        if rule is not None and (rule.keep_all or not isinstance(item, str | int | float)):
            kept[key] = _kept(item, rule)
    return kept


def _kept(value: JsonValue, node: _Node) -> JsonValue:
    if node.keep_all or value is None:
        return value
    if isinstance(value, dict):
        return _kept_fields(value, node)
    if isinstance(value, list) and node.element is not None:
        element = node.element
        return [
            _kept(item, element)
            for item in value
            if element.keep_all or isinstance(item, dict | list)
        ]
    return [] if isinstance(value, list) else None
