"""Slack's client without its three hundred methods, of which a bot calls none: 0.6 MB and 5 ms of a start.

Bolt makes one for each request, and takes no other class than this. A method that is called is the
client's own, which is loaded then.
"""

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import MethodType, ModuleType
from typing import Any, Final

_MODULE: Final = "slack_sdk.web.async_client"
_CLASS: Final = "AsyncWebClient"


def spare_methods() -> None:
    """Let it be so; nothing where the client is loaded already."""
    sys.modules.setdefault(_MODULE, _LateClient(_MODULE))


class _LateClient(ModuleType):
    """Stands in for the client's module, for good: there is one class of that name."""

    def __getattr__(self, name: str) -> Any:
        if name != _CLASS:
            raise AttributeError(name)
        base = import_module("slack_sdk.web.async_base_client").AsyncBaseClient
        lean = type(_CLASS, (base,), {"__module__": _MODULE, "__getattr__": _method})
        setattr(self, name, lean)
        return lean


def _method(client: object, name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return MethodType(getattr(_whole(), name), client)


@cache
def _whole() -> Any:
    spec = PathFinder.find_spec(_MODULE, import_module("slack_sdk.web").__path__)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(_MODULE, name=_MODULE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, _CLASS)
