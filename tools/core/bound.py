"""The capability a tool declared, which the runner has checked is configured."""

from typing import TypeVar

from tools.errors import NobodyToAsk

T = TypeVar("T")


def bound(capability: T | None, name: str) -> T:
    """Raises NobodyToAsk when it is not configured."""
    if capability is None:
        raise NobodyToAsk(f"not configured: {name}")
    return capability
