"""What a cluster and a team offer to those who run things: kinds, their fields, and written pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OfferedKind:
    """A kind of object that can be created. `api_version` as in a manifest: `apps/v1`, `v1`."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool
    short_names: Sequence[str] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field; `path` is dotted, with `[]` after a list: `spec.containers[].image`."""

    path: str
    type: str
    required: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class ResourceSchema:
    """The fields of a kind, those at the top first. `more` says that deeper or further ones exist."""

    kind: str
    api_version: str
    description: str
    fields: Sequence[SchemaField]
    more: bool = False


@dataclass(frozen=True, slots=True)
class WrittenPattern:
    """A page that the team wrote: the part of it that answers best."""

    title: str
    file: str
    section: str
    text: str


class ClusterOffer(Protocol):
    """What can be created in a cluster. Both raise UpstreamFailed and CapabilityUnavailable."""

    async def kinds(self) -> Sequence[OfferedKind]:
        """Every kind once, in the version that the cluster prefers."""
        ...

    async def schema(self, kind: str, api_version: str, below: str) -> ResourceSchema:
        """The fields of a kind, from `below` (a dotted path, empty: the top) two levels down.

        Raises InvalidArguments for an unknown kind or field.
        """
        ...


class Patterns(Protocol):
    async def search(self, text: str, limit: int) -> Sequence[WrittenPattern]:
        """The best first. Raises InvalidArguments (no word to search by), CapabilityUnavailable."""
        ...
