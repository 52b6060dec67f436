"""Queries to a cluster and their results: objects, tables, events, a container's lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

KubernetesObject = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ObjectQuery:
    """Objects of a kind. Empty `namespace`: the usual one; `*`: all."""

    kind: str
    namespace: str = ""
    name: str = ""
    selector: str = ""


@dataclass(frozen=True, slots=True)
class ObjectTable:
    """As kubectl shows them: the same columns.

    `more`: there are more; `unread`: the number of unreadable ones.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: bool = False
    unread: int = 0


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Whole objects. `more`: there are more; `unread`: entries that are not objects."""

    objects: Sequence[KubernetesObject]
    more: bool = False
    unread: int = 0


@dataclass(frozen=True, slots=True)
class PodLogQuery:
    """The newest `tail` lines of a container; `previous` is the one before the last restart."""

    namespace: str
    pod: str
    container: str = ""
    previous: bool = False
    tail: int = 100
    since_s: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """What happened to an object, `count` times, last at `at`."""

    at: datetime | None
    kind: str
    name: str
    type: str
    reason: str
    message: str
    count: int = 1
    namespace: str = ""


class Kubernetes(Protocol):
    """Reads a cluster. Secrets, values of variables and unknown annotations never come back.

    Every method raises InvalidArguments (unknown kind, name or container), UpstreamFailed,
    CapabilityUnavailable.
    """

    async def table(self, query: ObjectQuery) -> ObjectTable:
        """The objects, at most 1,000; `more` if there are more."""
        ...

    async def describe(self, query: ObjectQuery) -> dict[str, JsonValue]:
        """One object, without what may not be shown."""
        ...

    async def objects(self, query: ObjectQuery) -> ObjectList:
        """Whole objects of a kind, at most 1,000, each without what may not be shown."""
        ...

    async def events(self, query: ObjectQuery) -> Sequence[ClusterEvent]:
        """Of an object, or of a whole namespace when no name is given: the newest 500, newest first."""
        ...

    async def logs(self, query: PodLogQuery) -> Sequence[str]:
        """The lines, oldest first."""
        ...
