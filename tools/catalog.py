"""The tools that are bound, checked when they are registered, and what a request may see of them.

A mistake in a declaration is an error at start, never a surprise at the call. Of a result only the
listed fields pass. Their paths are dotted, `[]` steps into list elements: `lines[].message`. A path
that ends at a container keeps all of it (`series[].labels`). `root.children[]...` says that each child
repeats the shape of the object that holds it, for trees.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Protocol

import orjson
from pydantic import JsonValue

from tools.attached import AttachedFile
from tools.capabilities import Capabilities
from tools.contract import PROPOSE_TOOL_ID, AnyTool, Effect, ToolContract
from tools.policy import Asking, ToolPolicy
from tools.products import is_offered
from tools.schema import NAME, SchemaNotPortable, input_schema

_CAPABILITY_NAMES = frozenset(field.name for field in fields(Capabilities))
_BUILT_IN = "core__"

# What different channels and askers see, of one set of tools.
_REMEMBERED = 256

_REPEAT = "..."
_STEP = re.compile(r"([^\[\].]+)((?:\[\])*)")


class AllowlistInvalid(ValueError):
    pass


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
        """A copy with only the listed fields."""
        return _kept_fields(value, self._root)


class Questioning(Asking, Protocol):
    """What a request may see depends on this; a CallContext is one."""

    @property
    def files(self) -> tuple[AttachedFile, ...]: ...


class CatalogInvalid(ValueError):
    """A tool's declaration cannot be accepted."""


@dataclass(frozen=True, slots=True)
class ToolDescription:
    name: str
    description: str
    input_schema: dict[str, JsonValue]

    @property
    def size_bytes(self) -> int:
        """As compact JSON, which is close to what each provider's wire makes of it."""
        return len(orjson.dumps([self.name, self.description, self.input_schema]))


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A registered tool with the values derived from its contract once."""

    tool: AnyTool
    contract: ToolContract
    allowlist: Allowlist
    description: ToolDescription


class ToolCatalog:
    """Raises CatalogInvalid at construction. `bound`, when given, hides tools that cannot work."""

    __slots__ = ("_bound", "_policy", "_shown", "_tools")

    def __init__(
        self, tools: Iterable[AnyTool], policy: ToolPolicy, bound: Capabilities | None = None
    ) -> None:
        self._policy = policy
        self._bound = bound
        self._tools: dict[str, BoundTool] = {}
        self._shown: dict[object, tuple[ToolDescription, ...]] = {}
        for tool in tools:
            entry = _checked(tool)
            if entry.contract.id in self._tools:
                raise CatalogInvalid(f"two tools are called {entry.contract.id}")
            self._tools[entry.contract.id] = entry

    def get(self, name: str) -> BoundTool | None:
        return self._tools.get(name)

    def visible(self, asking: Questioning) -> tuple[ToolDescription, ...]:
        """The tools of this purpose and session, in the order of ids: the same bytes each time.

        Usually the same tuple object for the same tools.
        """
        who = (asking.purpose, asking.channel, asking.session_name, asking.roles)
        key = who, asking.connection_ids, asking.products, asking.reading, bool(asking.files)
        shown = self._shown.get(key)
        if shown is None:
            if len(self._shown) >= _REMEMBERED:
                self._shown.clear()
            shown = self._shown[key] = self._visible(asking)
        return shown

    def _visible(self, asking: Questioning) -> tuple[ToolDescription, ...]:
        return tuple(
            entry.description
            for _, entry in sorted(self._tools.items())
            if self._policy.allows(entry.contract, asking)
            and self._policy.permits(entry.contract, asking)
            and (asking.files or not entry.contract.of_files)
            and is_offered(entry.contract.products, asking)
            and self._can_work(entry.contract)
            and self._is_connected(entry.contract, asking)
        )

    def _can_work(self, contract: ToolContract) -> bool:
        return self._bound is None or not missing_capabilities(contract, self._bound)

    def _is_connected(self, contract: ToolContract, asking: Asking) -> bool:
        granted = self._policy.connections(asking.connection_ids)
        return not contract.requires_connection or bool(granted)


def missing_capabilities(contract: ToolContract, bound: Capabilities) -> tuple[str, ...]:
    fields_ = (name for name in contract.capabilities if getattr(bound, name) is None)
    ports = (port.name for port in contract.ports if port.name not in bound.more)
    return tuple(sorted((*fields_, *ports)))


def _checked(tool: AnyTool) -> BoundTool:
    return BoundTool(tool, tool.contract, *checked_contract(tool.contract))


def checked_contract(contract: ToolContract) -> tuple[Allowlist, ToolDescription]:
    """The parsed parts of a declaration. Raises CatalogInvalid for an invalid one."""
    if NAME.fullmatch(contract.id) is None or not contract.id.split("__", 1)[-1]:
        raise CatalogInvalid(f"{contract.id!r}: a tool id is [a-z0-9_]{{1,64}}")
    if "__" not in contract.id:
        raise CatalogInvalid(f"{contract.id}: a tool id is namespaced, as in core__get_logs")
    if contract.effect is not Effect.READ_ONLY and contract.id != PROPOSE_TOOL_ID:
        raise CatalogInvalid(f"{contract.id}: a tool may only read, not {contract.effect}")
    unknown = contract.capabilities - _CAPABILITY_NAMES
    if unknown:
        raise CatalogInvalid(f"{contract.id}: no such capability: {', '.join(sorted(unknown))}")
    if contract.opaque and not contract.id.startswith(_BUILT_IN):
        raise CatalogInvalid(f"{contract.id}: only built-in tools have fields not redacted as text")
    unnamed = set(contract.products.arguments) - contract.input.model_fields.keys()
    if unnamed:
        raise CatalogInvalid(f"{contract.id}: no such argument: {', '.join(sorted(unnamed))}")
    if not 0 < contract.timeouts.default_s <= contract.timeouts.ceiling_s:
        raise CatalogInvalid(f"{contract.id}: the default timeout must be within its ceiling")
    try:
        allowlist = Allowlist(contract.redaction)
        schema = input_schema(contract.input)
    except (AllowlistInvalid, SchemaNotPortable) as error:
        raise CatalogInvalid(f"{contract.id}: {error}") from error
    return allowlist, ToolDescription(contract.id, contract.description, schema)


def _add_repeat(root: _Node, path: str) -> None:
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
        if rule is None:
            continue
        if rule.keep_all:
            kept[key] = item
        elif not isinstance(item, str | int | float):
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
