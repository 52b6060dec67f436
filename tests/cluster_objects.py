"""Builds the objects of an invented cluster, as the Kubernetes API returns them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from tests.packs import NOW
from tools.analysis.cluster.inventory import Inventory
from tools.cluster_objects import ClusterEvent

SPACE = "fleet"
HASH = "7d9f8b6c5"
PRODUCTS = ("billing", "ledger", "mailer")

Object = dict[str, Any]


def ago(**units: float) -> str:
    """The API's text for a time before now."""
    return (NOW - timedelta(**units)).isoformat()


def built(kind: str, name: str, space: str = SPACE, **parts: Any) -> Object:
    """An object of that kind; `labels` go into its metadata, the rest beside it."""
    metadata: Object = {"name": name, "creationTimestamp": ago(hours=5)}
    if space:
        metadata["namespace"] = space
    for key in ("labels", "annotations", "ownerReferences", "creationTimestamp"):
        if key in parts:
            metadata[key] = parts.pop(key)
    return {"kind": kind, "metadata": metadata, **parts}


def container(name: str = "app", port: int | None = 8080, **more: Any) -> Object:
    """A container of a pod's spec that declares one port."""
    ports = [] if port is None else [{"containerPort": port, "name": "http"}]
    return {"name": name, "image": f"registry.example/{name}:v7", "ports": ports, **more}


def running(minutes: float = 200, **more: Any) -> Object:
    """The status of a container that runs and is ready."""
    state = {"running": {"startedAt": ago(minutes=minutes)}}
    return {"name": "app", "ready": True, "restartCount": 0, "state": state, **more}


def waiting(reason: str, message: str = "", **more: Any) -> Object:
    """The status of a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "app", "ready": False, "restartCount": 0, "state": state, **more}


def ended(reason: str = "Error", code: int = 1, minutes: float = 1) -> Object:
    """How a container ended."""
    return {"terminated": {"reason": reason, "exitCode": code, "finishedAt": ago(minutes=minutes)}}


def pod(product: str = "billing", *statuses: Object, **more: Any) -> Object:
    """A pod of the product's Deployment; without a status its container runs."""
    spec: Object = {"containers": [container()], "nodeName": "alpha", **more.pop("spec", {})}
    status: Object = {
        "phase": "Running",
        "startTime": ago(hours=4),
        "containerStatuses": list(statuses) or [running()],
        **more.pop("status", {}),
    }
    owner = {"kind": "ReplicaSet", "name": f"{product}-{HASH}", "controller": True}
    labels = {"app": product, "pod-template-hash": HASH}
    made = {"labels": labels, "ownerReferences": [owner], **more}
    name = made.pop("name", f"{product}-{HASH}-k2m4p")
    return built("Pod", name, spec=spec, status=status, **made)


def unscheduled(product: str = "billing", message: str = "", **spec: Any) -> Object:
    """A pod without a node, with what the scheduler says of it."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    conditions = [{**refused, "message": message}] if message else []
    status = {"phase": "Pending", "containerStatuses": [], "conditions": conditions}
    return pod(product, spec={"nodeName": "", **spec}, status=status)


def deployment(product: str = "billing", wanted: int = 1, ready: int = 1, **more: Any) -> Object:
    """A Deployment with pods labelled `app=<product>`."""
    labels = {"app": product}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    spec = {"replicas": wanted, "selector": {"matchLabels": labels}, "template": template}
    status = {"replicas": wanted, "readyReplicas": ready, **more.pop("status", {})}
    kind = more.pop("kind", "Deployment")
    return built(kind, product, spec={**spec, **more.pop("spec", {})}, status=status, **more)


def service(name: str = "billing", **spec: Any) -> Object:
    """A Service to port 8080 of the pods labelled with its name."""
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    return built("Service", name, spec={"selector": {"app": name}, "ports": ports, **spec})


def endpoints(name: str = "billing", *ips: str, port: int = 8080) -> Object:
    """The addresses behind a Service."""
    rows = [{"addresses": [{"ip": ip} for ip in ips], "ports": [{"name": "web", "port": port}]}]
    return built("Endpoints", name, subsets=rows if ips else [])


def node(name: str = "alpha", *conditions: Object, **spec: Any) -> Object:
    """A node, Ready where no condition says otherwise."""
    ready = {"type": "Ready", "status": "True"}
    status = {
        "conditions": [*conditions, ready],
        "allocatable": {"cpu": "4", "memory": "8Gi"},
    }
    return built("Node", name, "", spec=spec, status=status, labels={})


def claim(name: str = "ledger-data", phase: str = "Pending", **spec: Any) -> Object:
    """A volume claim of one GiB."""
    wanted = {"requests": {"storage": "1Gi"}}
    full = {"accessModes": ["ReadWriteOnce"], "resources": wanted, **spec}
    return built("PersistentVolumeClaim", name, spec=full, status={"phase": phase})


def volume(name: str = "disk-1", **more: Any) -> Object:
    """A free volume of one GiB without a class."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "",
        **more.pop("spec", {}),
    }
    return built("PersistentVolume", name, "", spec=spec, status={"phase": "Available"}, **more)


def mounting(name: str) -> Object:
    """The part of a pod's spec that mounts a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def quota(**limits: tuple[str, str]) -> Object:
    """A ResourceQuota by resource: used and limit. `__` means a dot."""
    plain = {key.replace("__", "."): both for key, both in limits.items()}
    status = {
        "used": {key: used for key, (used, _) in plain.items()},
        "hard": {key: hard for key, (_, hard) in plain.items()},
    }
    return built("ResourceQuota", "fleet-quota", status=status)


def autoscaler(target: str = "billing", *conditions: Object, most: int = 5) -> Object:
    """An autoscaler of a Deployment."""
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": target}, "maxReplicas": most}
    status = {"currentReplicas": most, "conditions": list(conditions)}
    return built("HorizontalPodAutoscaler", f"{target}-hpa", spec=spec, status=status)


def event(kind: str, name: str, reason: str, message: str, **more: Any) -> ClusterEvent:
    """A warning of a minute ago."""
    at = NOW - timedelta(minutes=more.get("minutes", 1))
    of = more.get("type", "Warning")
    return ClusterEvent(at, kind, name, of, reason, message, 1, more.get("space", SPACE))


def inventory(
    objects: Sequence[Object], events: Sequence[ClusterEvent] = (), **more: Any
) -> Inventory:
    """The cluster that these make."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {"PersistentVolumeClaim": []}
    for one in objects:
        by_kind.setdefault(one["kind"], []).append(one)
    return Inventory(by_kind, events, more.get("products", PRODUCTS), NOW, **more.get("known", {}))
