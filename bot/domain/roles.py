"""The roles that a person was found to hold."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class HeldRoles:
    """Of those asked for: the ones held, and the ones of which it could not be told."""

    held: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()


NO_ROLES: Final = HeldRoles()
