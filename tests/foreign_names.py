"""Finds where the product reaches into a library: private names, patches, the import machinery.

A name is foreign when it is imported from outside our packages. Within a class, `self` is ours, but
for private names that one of its foreign bases has, or that no class of ours defines.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from tests.sources import PACKAGES, ROOT

OURS = {*PACKAGES, "migrations", "tests"}
# Documented with their underscore: https://docs.python.org/3/library/collections.html
NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make", "_field_defaults"}
# https://docs.python.org/3/library/ctypes.html
PUBLIC_BY_DOCUMENTATION = NAMED_TUPLES | {"_fields_"}
IMPORT_MACHINERY = {"meta_path", "path_hooks", "path_importer_cache"}
_CHANGES = {"pop", "popitem", "update", "setdefault", "clear"}
_BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}
_OWN = {"self", "cls"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Reach:
    """One place where the product reaches into a library."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


@dataclass(slots=True)
class _Class:
    """`bases` are dotted names: of ours, or of a library's."""

    bases: list[str]
    defined: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Module:
    """`imported` are dotted names by the name that the module gives them."""

    path: str
    nodes: list[ast.AST]
    imported: dict[str, str]
    classes: dict[str, _Class] = field(default_factory=dict)
    owner: dict[ast.AST, str] = field(default_factory=dict)  # the class around a node


def reaches(planted: Mapping[str, str] | None = None) -> list[Reach]:
    """All of the product's; `planted` are more modules by path, looked at instead of the product."""
    modules = {**_product()}
    looked_at = [*modules.values()]
    if planted is not None:
        looked_at = [_module(path, text) for path, text in planted.items()]
        modules |= {_dotted(each.path): each for each in looked_at}
    return [reach for module in looked_at for reach in _Look(module, modules).found()]


@cache
def _product() -> Mapping[str, _Module]:
    names = (*PACKAGES, "migrations")
    paths = sorted(path for name in names for path in (ROOT / name).rglob("*.py"))
    read = (_module(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in paths)
    return {_dotted(each.path): each for each in read}


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _module(path: str, text: str) -> _Module:
    nodes = [*ast.walk(ast.parse(text))]
    module = _Module(path, nodes, dict(_imported(nodes)))
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            inner = [*ast.walk(node)]
            bases = [_resolved(base, module, _dotted(path)) for base in node.bases]
            defined = set(_defined(node, inner))
            module.classes[node.name] = _Class([base for base in bases if base], defined)
            module.owner.update(dict.fromkeys(inner, node.name))  # an inner class comes later
    return module


def _imported(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, f"={ast.unparse(node.value)}"


def _resolved(node: ast.expr, module: _Module, dotted: str) -> str:
    """The dotted name of what an expression names: imported, or a class of this module."""
    if isinstance(node, ast.Subscript):
        return _resolved(node.value, module, dotted)
    if isinstance(node, ast.Attribute):
        inner = _resolved(node.value, module, dotted)
        return f"{inner}.{node.attr}" if inner else ""
    if not isinstance(node, ast.Name):
        return ""
    found = module.imported.get(node.id, f"{dotted}.{node.id}")
    seen = {node.id}
    while found.startswith("="):  # another name for something
        root, _, rest = found[1:].partition(".")
        if root in seen:
            return ""
        seen.add(root)
        named = module.imported.get(root, f"{dotted}.{root}")
        found = f"{named}.{rest}" if rest else named
    return found


def _defined(node: ast.ClassDef, inner: Sequence[ast.AST]) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, _Function | ast.ClassDef):
            yield part.name
        for name in ast.walk(part) if isinstance(part, ast.Assign | ast.AnnAssign) else ():
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                yield name.id
            elif isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value  # of __slots__
    for each in inner:
        match each:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr, ctx=ast.Store()):
                yield attr


class _Look:
    """One module under examination."""

    def __init__(self, module: _Module, modules: Mapping[str, _Module]) -> None:
        self._module = module
        self._modules = modules
        self._dotted = _dotted(module.path)
        self._named: set[ast.Name] | None = None

    def found(self) -> Iterator[Reach]:
        """In the order of the source."""
        for node in self._module.nodes:
            for what in self._of(node):
                yield Reach(self._module.path, getattr(node, "lineno", 0), what)

    def _of(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from _private_imports(node)
            case ast.Attribute():
                yield from self._attribute(node)
            case ast.Subscript(ctx=ast.Store() | ast.Del(), value=value):
                if self._names(value) == "sys.modules":
                    yield "changes sys.modules"
            case ast.Call(func=ast.Name(id=function)) if function in _BY_NAME:
                yield from self._by_name(function, node.args)
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                if method in _CHANGES and self._names(value) == "sys.modules":
                    yield "changes sys.modules"
                if method in ("__setattr__", "__delattr__") and not self._is_own(node.args[0]):
                    yield f"sets an attribute of {ast.unparse(node.args[0])}"
            case ast.ClassDef(name=name):
                yield from self._overridden(name)

    def _attribute(self, node: ast.Attribute) -> Iterator[str]:
        name, is_read = node.attr, isinstance(node.ctx, ast.Load)
        named = self._names(node.value)
        if named == "sys" and name in IMPORT_MACHINERY:
            yield f"uses sys.{name}"
        elif _is_private(name):
            yield from self._private(node.value, name)
        elif not is_read and named and _is_foreign(named):
            yield f"sets {named}.{name}"
        elif not is_read and name.startswith("__") and not self._is_own(node.value):
            yield f"sets {name}"

    def _private(self, value: ast.expr, name: str) -> Iterator[str]:
        if self._is_own(value):
            owner = self._module.owner.get(value)
            if owner is not None and not self._has(f"{self._dotted}.{owner}", name):
                yield f"uses {name}, which no class of ours defines"
            return
        named = self._names(value)
        if not named or _is_foreign(named) or not self._is_ours(named):
            yield f"uses {ast.unparse(value)}.{name}"

    def _by_name(self, function: str, arguments: list[ast.expr]) -> Iterator[str]:
        target, name = arguments[:2]
        if isinstance(name, ast.Constant) and _is_private(str(name.value)):
            yield from self._private(target, str(name.value))
        elif function in ("setattr", "delattr") and not self._is_own(target):
            yield f"{function} of {ast.unparse(target)}"

    def _overridden(self, name: str) -> Iterator[str]:
        ours = {each for each in self._module.classes[name].defined if _is_private(each)}
        if not ours:
            return
        for base in self._foreign_bases(f"{self._dotted}.{name}", set()):
            for each in sorted(ours & _private_names(base)):
                yield f"{name} overrides {each} of {base}"

    def _has(self, dotted: str, name: str) -> bool:
        """Whether a class or one of its bases of ours defines it."""
        module, _, kind = dotted.rpartition(".")
        found = self._modules.get(module)
        if found is None or kind not in found.classes:
            return False
        known = found.classes[kind]
        return name in known.defined or any(self._has(base, name) for base in known.bases)

    def _foreign_bases(self, dotted: str, seen: set[str]) -> Iterator[str]:
        module, _, kind = dotted.rpartition(".")
        found = self._modules.get(module)
        if dotted in seen:
            return
        seen.add(dotted)
        if found is not None and kind in found.classes:
            for base in found.classes[kind].bases:
                yield from self._foreign_bases(base, seen)
        elif _is_foreign(dotted):
            yield dotted

    def _is_own(self, node: ast.expr) -> bool:
        """`self`, `super()`, and what is annotated or made as another object of the same class."""
        is_super = isinstance(node, ast.Call) and ast.unparse(node.func) == "super"
        is_self = isinstance(node, ast.Name) and node.id in _OWN
        return is_super or is_self or node in self._others()

    def _others(self) -> set[ast.Name]:
        """Where methods name another object of their class."""
        if self._named is None:
            owner = self._module.owner
            methods = (n for n in self._module.nodes if isinstance(n, _Function) and n in owner)
            self._named = {name for each in methods for name in _others(each, owner[each])}
        return self._named

    def _names(self, node: ast.expr) -> str:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        is_known = isinstance(root, ast.Name) and (
            root.id in self._module.imported or root.id in self._module.classes
        )
        return _resolved(node, self._module, self._dotted) if is_known else ""

    def _is_ours(self, dotted: str) -> bool:
        module, _, kind = dotted.rpartition(".")
        found = self._modules.get(module)
        return dotted in self._modules or (found is not None and kind in found.classes)


def _others(function: _Function, owner: str) -> Iterator[ast.Name]:
    """Where a method names another object of its class, by annotation or made from itself."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    annotated = {
        each.arg
        for each in arguments
        if each.annotation is not None and ast.unparse(each.annotation).strip("'\"") == owner
    }
    made = {
        target.id
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and ast.unparse(each.value) == "self"
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    names = (each for each in ast.walk(function) if isinstance(each, ast.Name))
    return (each for each in names if each.id in annotated | made)


def _private_imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    source = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
    for alias in node.names:
        named = ".".join((*source, alias.name))
        if _is_foreign(named) and any(map(_is_private, named.split("."))):
            yield f"imports {named}"


def _is_foreign(dotted: str) -> bool:
    return dotted.partition(".")[0] not in OURS


def _is_private(name: str) -> bool:
    is_special = name.startswith("__") and name.endswith("__")
    return (
        name.startswith("_") and name != "_" and not is_special | (name in PUBLIC_BY_DOCUMENTATION)
    )


@cache
def _private_names(dotted: str) -> frozenset[str]:
    """The attributes of a library's class, and the attributes that its methods set."""
    module, _, kind = dotted.rpartition(".")
    try:
        base = getattr(importlib.import_module(module), kind)
    except (ImportError, AttributeError, ValueError):
        return frozenset()
    bases = [each for each in inspect.getmro(base) if each.__module__ != "builtins"]
    has = {name for each in bases for name in vars(each)}
    set_ = {name for each in bases for name in _set_in(each.__module__).get(each.__name__, ())}
    return frozenset(filter(_is_private, has | set_))


@cache
def _set_in(module: str) -> Mapping[str, set[str]]:
    """The names that the classes of a library's module set, by class."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):  # not written in Python
        return {}
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {node.name: set(_defined(node, [*ast.walk(node)])) for node in classes}
