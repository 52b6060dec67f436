"""What a cluster offers to those who run things on it: kinds, and the fields of a kind. Values only."""

from collections.abc import Sequence
from dataclasses import dataclass


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
