"""What the cluster of the simulated shop offers: a few kinds, one of them an operator's."""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from adapters.kubernetes.openapi import schema_of
from adapters.kubernetes.purposes import USED_FOR
from tools.cluster_offer import OfferedKind, ResourceSchema
from tools.errors import InvalidArguments

_KINDS: Final = (
    OfferedKind("Deployment", "apps/v1", "deployments", True, ("deploy",)),
    OfferedKind("StatefulSet", "apps/v1", "statefulsets", True, ("sts",)),
    OfferedKind("Service", "v1", "services", True, ("svc",)),
    OfferedKind(
        "HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", True, ("hpa",)
    ),
    OfferedKind(
        "PostgresCluster",
        "data.shop.example/v1",
        "postgresclusters",
        True,
        ("pg",),
        "A Postgres database with replicas, backups and a pool of connections.",
    ),
)


def _object(description: str, /, *required: str, **properties: JsonValue) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "properties": properties,
    }


def _one(kind: str, description: str) -> dict[str, JsonValue]:
    return {"type": kind, "description": description}


def _list(of: JsonValue, description: str) -> dict[str, JsonValue]:
    return {"type": "array", "items": of, "description": description}


_CONTAINER: Final = _object(
    "One container of a pod.",
    "name",
    name=_one("string", "Unique in the pod."),
    image=_one("string", "Registry, name and tag."),
    ports=_list(_object("", "containerPort", containerPort=_one("integer", "")), "What it serves."),
)
_POD_SPEC: Final = _object(
    "What a pod runs.", "containers", containers=_list(_CONTAINER, "At least one.")
)
_METRIC: Final = _object(
    "", "type", type=_one("string", "Resource, Pods, Object, External or ContainerResource.")
)
_SPECS: Final = {
    ("Deployment", "apps/v1"): _object(
        "How it is rolled out.",
        "selector",
        "template",
        replicas=_one("integer", "Number of desired pods. Defaults to 1."),
        selector=_object("Which pods are its own."),
        template=_object("The pods.", spec=_POD_SPEC),
    ),
    ("StatefulSet", "apps/v1"): _object(
        "Pods with an identity and storage of their own.",
        "selector",
        "template",
        replicas=_one("integer", "Number of desired pods. Defaults to 1."),
        serviceName=_one("string", "The Service that gives the pods their names."),
        template=_object("The pods.", spec=_POD_SPEC),
    ),
    ("Service", "v1"): _object(
        "Where traffic goes.",
        ports=_list(_object("", "port", port=_one("integer", "")), "What it serves."),
        selector={**_one("object", "Labels of its pods."), "additionalProperties": {"type": "string"}},
        type=_one("string", "ClusterIP, NodePort, LoadBalancer or ExternalName."),
    ),
    ("HorizontalPodAutoscaler", "autoscaling/v2"): _object(
        "When to scale.",
        "maxReplicas",
        "scaleTargetRef",
        maxReplicas=_one("integer", "The most pods."),
        minReplicas=_one("integer", "The fewest pods. Defaults to 1."),
        metrics=_list(_METRIC, "What is watched."),
        scaleTargetRef=_object("What is scaled.", "kind", "name", kind=_one("string", "")),
    ),
    ("PostgresCluster", "data.shop.example/v1"): _object(
        "A database.",
        "version",
        version=_one("string", "Major version of Postgres."),
        replicas=_one("integer", "Two in production."),
        maxConnections=_one("integer", "40 per service."),
        backup=_object("When it is backed up.", schedule=_one("string", "As cron writes it.")),
    ),
}  # fmt: skip


class RecordedOffer:
    """The same for every incident."""

    async def kinds(self) -> Sequence[OfferedKind]:
        return [
            OfferedKind(
                one.kind, one.api_version, one.plural, one.namespaced, one.short_names,
                one.description or USED_FOR[one.kind],
            )
            for one in _KINDS
        ]  # fmt: skip

    async def schema(self, kind: str, api_version: str, below: str) -> ResourceSchema:
        """Raises InvalidArguments."""
        if api_version not in {version for _, version in _SPECS}:
            raise InvalidArguments(f"api_version: the cluster has no {api_version}")
        return schema_of(_document(), kind, api_version, below)


def _document() -> dict[str, JsonValue]:
    schemas: dict[str, JsonValue] = {}
    for (kind, api_version), spec in _SPECS.items():
        group, _, version = api_version.rpartition("/")
        schemas[f"{group}.{version}.{kind}"] = {
            **_object(f"{kind} of the shop's cluster.", spec=spec, metadata=_object("")),
            "x-kubernetes-group-version-kind": [{"group": group, "kind": kind, "version": version}],
        }
    return {"components": {"schemas": schemas}}
