"""`tools.cluster_offer.ClusterOffer` on a real API server: its discovery and its OpenAPI documents."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import structlog
from pydantic import Field, JsonValue, TypeAdapter

from adapters.kubernetes.api import KubernetesApi, parsed
from adapters.kubernetes.openapi import schema_of
from adapters.kubernetes.purposes import USED_FOR
from tools.cluster_offer import OfferedKind, ResourceSchema
from tools.errors import InvalidArguments, ToolError, UpstreamFailed
from tools.outside_json import Entries, OutsideModel

# One document for all groups, from Kubernetes 1.26 on (v2beta1) and 1.30 (v2); older are past support.
_DISCOVERY: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
_CUSTOM: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MOST_CUSTOM: Final = 500
_KNOWN_S: Final = 300.0  # kinds come and go with operators, which takes people minutes as well
_DISCOVERY_KIND: Final = "APIGroupDiscoveryList"

_log = structlog.get_logger(__name__)


class _Named(OutsideModel):
    name: str = ""


class _ResponseKind(OutsideModel):
    kind: str = ""


class _Resource(OutsideModel):
    plural: str = Field(alias="resource")
    kind: _ResponseKind = Field(default=_ResponseKind(), alias="responseKind")
    scope: str = "Namespaced"
    verbs: Entries[str] = Field(default_factory=list)
    short_names: Entries[str] = Field(default_factory=list, alias="shortNames")


class _Version(OutsideModel):
    version: str
    resources: Entries[_Resource] = Field(default_factory=list)


class _Group(OutsideModel):
    metadata: _Named = _Named()
    versions: Entries[_Version] = Field(default_factory=list)


class _Groups(OutsideModel):
    kind: str = ""
    items: Entries[_Group] = Field(default_factory=list)


class _OpenApi(OutsideModel):
    description: str = ""


class _CustomSchema(OutsideModel):
    openapi: _OpenApi = Field(default=_OpenApi(), alias="openAPIV3Schema")


class _CustomVersion(OutsideModel):
    schema_: _CustomSchema = Field(default=_CustomSchema(), alias="schema")


class _CustomSpec(OutsideModel):
    group: str
    names: _ResponseKind
    versions: Entries[_CustomVersion] = Field(default_factory=list)


class _Custom(OutsideModel):
    spec: _CustomSpec


class _Customs(OutsideModel):
    items: Entries[_Custom] = Field(default_factory=list)


_GROUPS_BODY: Final = TypeAdapter(_Groups)
_CUSTOMS_BODY: Final = TypeAdapter(_Customs)
_DOCUMENT_BODY: Final = TypeAdapter(dict[str, JsonValue])


class KubernetesOffer:
    """Safe for concurrent use. Kinds are remembered for five minutes."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._kinds: Sequence[OfferedKind] = ()
        self._known_until = 0.0

    async def kinds(self) -> Sequence[OfferedKind]:
        if time.monotonic() >= self._known_until:
            described = await self._descriptions()
            self._kinds = [
                kind
                for path in ("/api", "/apis")
                for group in await self._groups(path)
                for kind in _offered(group, described)
            ]
            self._known_until = time.monotonic() + _KNOWN_S
        return self._kinds

    async def schema(self, kind: str, api_version: str, below: str) -> ResourceSchema:
        """From the OpenAPI document of the group and version."""
        path = f"/openapi/v3/{'apis' if '/' in api_version else 'api'}/{api_version}"
        try:
            body = await self._api.get(path)
        except InvalidArguments as error:
            raise InvalidArguments(f"api_version: the cluster has no {api_version}") from error
        document = await asyncio.to_thread(parsed, _DOCUMENT_BODY, body)
        return schema_of(document, kind, api_version, below)

    async def _groups(self, path: str) -> Sequence[_Group]:
        body = await self._api.get(path, accept=_DISCOVERY)
        found = await asyncio.to_thread(parsed, _GROUPS_BODY, body)
        if found.kind != _DISCOVERY_KIND:
            raise UpstreamFailed("the API server is older than Kubernetes 1.26")
        return found.items

    async def _descriptions(self) -> Mapping[tuple[str, str], str]:
        try:
            body = await self._api.get(_CUSTOM, {"limit": str(_MOST_CUSTOM)})
            found = await asyncio.to_thread(parsed, _CUSTOMS_BODY, body)
        except ToolError as error:
            _log.info("kubernetes.custom_kinds_not_described", error=error.message)
            return {}
        return {
            (one.spec.group, one.spec.names.kind): next(
                (v.schema_.openapi.description for v in one.spec.versions), ""
            )
            for one in found.items
        }


def _offered(group: _Group, described: Mapping[tuple[str, str], str]) -> Iterator[OfferedKind]:
    """Its kinds in the first version that has them: the server lists the preferred one first."""
    seen: set[str] = set()
    for version in group.versions:
        for resource in version.resources:
            kind = resource.kind.kind
            if not kind or kind in seen or "create" not in resource.verbs:
                continue
            seen.add(kind)
            name = group.metadata.name
            yield OfferedKind(
                kind,
                f"{name}/{version.version}" if name else version.version,
                resource.plural,
                resource.scope == "Namespaced",
                resource.short_names,
                described.get((name, kind)) or USED_FOR.get(kind, ""),
            )
