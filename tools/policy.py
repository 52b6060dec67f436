"""The tools of each purpose, channel and role, as data. Default: deny.

A tool is usable when the toolset of the request's purpose names it, its effect is allowed, the
session's name fits, and neither the channel nor the deployment denies it. MCP tools are named one
by one: a server may announce new ones at any time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

from tools.call_limits import DEFAULT_LIMITS, CallLimits, smallest
from tools.contract import PROPOSE_TOOL_ID, Effect, ToolContract
from tools.products import Bounded

MCP_PREFIX = "mcp__"
EVERYBODY = "*"  # in place of a role: every asker
NAMELESS = "@"  # what has no name of its own is called by a word that begins with it: "@direct"


class Asking(Bounded, Protocol):
    @property
    def purpose(self) -> str: ...

    @property
    def channel(self) -> str:
        """The channel's name; empty when it could not be read."""
        ...

    @property
    def session_name(self) -> str: ...

    @property
    def connection_ids(self) -> frozenset[str]:
        """The granted connections that the request may use."""
        ...

    @property
    def roles(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """Deny by default.

    `toolsets` maps a purpose to globs of tool ids; a purpose that is not listed has no tools.
    `sessions` maps a tool id to globs of session names; a tool not listed there fits any session.
    `channels` are pairs of a channel's glob and tool globs, the first that matches narrows what the
    purpose gives; `denied` are globs of tools that no request has. `limits` are by purpose.
    `purposes` are those of any channel: if the channel is unknown, a tool is allowed if each of
    them has it and `channels` does not take it away. `roles` maps a role to globs of the tools that
    its holders may use of all that; `*` is every asker; an empty mapping narrows nothing.
    `granted_connections` are the connection ids the deployment grants; a call gets the intersection
    with what its request carries.
    """

    toolsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sessions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    effects: frozenset[Effect] = frozenset({Effect.READ_ONLY})
    granted_connections: frozenset[str] = frozenset()
    channels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    purposes: frozenset[str] = frozenset()
    denied: tuple[str, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: Mapping[str, CallLimits] = field(default_factory=dict)
    default_limits: CallLimits = DEFAULT_LIMITS

    def __post_init__(self) -> None:
        """Refuse a policy that would let a tool act. Raises ValueError."""
        if self.effects - {Effect.READ_ONLY}:
            raise ValueError("a tool may only read: actions are proposed and confirmed by people")

    def allows(self, contract: ToolContract, asking: Asking) -> bool:
        """Whether the tool exists for this purpose in this session."""
        if not all(self._has(purpose, contract.id) for purpose in self._purposes(asking)):
            return False
        if contract.effect not in self.effects and contract.id != PROPOSE_TOOL_ID:
            return False
        if _matches(self.denied, contract.id) or not self._in_channel(contract.id, asking.channel):
            return False
        sessions = self.sessions.get(contract.id)
        return sessions is None or _matches(sessions, asking.session_name)

    def permits(self, contract: ToolContract, asking: Asking) -> bool:
        """Whether one of the asker's roles gives the tool; that it exists here is `allows`."""
        if not self.roles:
            return True
        held = (*sorted(asking.roles), EVERYBODY)
        return any(_names(glob, contract.id) for role in held for glob in self.roles.get(role, ()))

    def limits_of(self, asking: Asking) -> CallLimits:
        """What a turn of this purpose may ask; the least of all where the channel is not known."""
        own = [self.limits.get(each, self.default_limits) for each in self._purposes(asking)]
        return own[0] if len(own) == 1 else smallest(own)

    def connections(self, requested: frozenset[str]) -> frozenset[str]:
        """What a call may use: granted and requested, never the union."""
        return self.granted_connections & requested

    def _purposes(self, asking: Asking) -> frozenset[str]:
        own = frozenset({asking.purpose})
        return own if asking.channel else own | self.purposes

    def _has(self, purpose: str, tool_id: str) -> bool:
        return any(_names(glob, tool_id) for glob in self.toolsets.get(purpose, ()))

    def _in_channel(self, tool_id: str, channel: str) -> bool:
        """These only take away, so `*` is for direct messages too, unless a pair names them."""
        if not channel:
            return all(_matches(tools, tool_id) for _, tools in self.channels)
        named = [tools for glob, tools in self.channels if fits_channel(channel, glob)]
        anyway = [tools for glob, tools in self.channels if fnmatchcase(channel, glob)]
        narrowed = next(iter((*named, *anyway)), None)
        return narrowed is None or _matches(narrowed, tool_id)


def fits_channel(channel: str, glob: str) -> bool:
    """Whether the glob names the channel; what has no name of its own only by its exact word."""
    if not channel or channel.startswith(NAMELESS):
        return bool(channel) and channel == glob
    return fnmatchcase(channel, glob)


def _matches(globs: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


@lru_cache(maxsize=4_096)  # asked for every tool of every request, about the same few hundred pairs
def _names(glob: str, tool_id: str) -> bool:
    """Whether the glob names the tool; an MCP tool only by its exact id."""
    if tool_id.startswith(MCP_PREFIX):
        return glob == tool_id
    return fnmatchcase(tool_id, glob)
