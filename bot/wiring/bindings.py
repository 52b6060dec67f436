"""The adapters of tools that declare a port of their own: one line each.

`[adapters.NAME]` of the port's name gives the address; without it
nothing is bound and the tool is not offered.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx

from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.wiring.routes import backend_client
from tools.port import Port

Bindings = Mapping[Port[Any], Callable[[httpx.AsyncClient], object]]

# PORT: Adapter. The adapter is given a client that reaches its own address and no other host.
BINDINGS: Bindings = {}


def bound(
    settings: Settings, stack: AsyncExitStack, bindings: Bindings = BINDINGS
) -> Mapping[str, object]:
    """Adapters by their port's name. Raises ConfigurationError for a table of nobody's."""
    adapters = {port.name: adapter for port, adapter in bindings.items()}
    for name in settings.adapters:
        if name not in adapters:
            raise ConfigurationError(
                f"adapters.{name}: no tool asks it; there are: {', '.join(adapters) or 'none'}"
            )
    return {
        name: adapters[name](backend_client(own.url, own, f"adapters.{name}.url", stack))
        for name, own in settings.adapters.items()
    }
