"""The built-in tools: every class of this folder with a `contract`, for the composition root."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import tools.core
from tools.contract import AnyTool, ToolContract
from tools.cursor import CursorSigner


def _kinds() -> list[Any]:
    here = f"{tools.core.__name__}.all"
    names = (f"{tools.core.__name__}.{each.name}" for each in iter_modules(tools.core.__path__))
    modules = [import_module(name) for name in names if name != here]
    found = [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and isinstance(getattr(kind, "contract", None), ToolContract)
    ]
    return sorted(found, key=lambda kind: str(kind.contract.id))


_KINDS = _kinds()  # read once, at import: reading a folder would hold up a running loop


def core_tools(signer: CursorSigner) -> tuple[AnyTool, ...]:
    """Unbound: what they reach is decided by the capabilities the runner holds. In order of ids."""
    return tuple(kind(signer) if _takes_signer(kind) else kind() for kind in _KINDS)


def _takes_signer(kind: type) -> bool:
    # inspect.signature() of a class without an __init__ leaves a copy of sys.modules behind, each
    # time: of all tools that was 4 MB.
    return "signer" in getattr(vars(kind).get("__init__"), "__annotations__", {})


def built_in_toolsets() -> dict[str, tuple[str, ...]]:
    """Which toolsets the tools declare themselves to be in."""
    contracts: list[ToolContract] = [kind.contract for kind in _KINDS]
    names = dict.fromkeys(name for each in contracts for name in each.toolsets)
    return {name: tuple(c.id for c in contracts if name in c.toolsets) for name in sorted(names)}
