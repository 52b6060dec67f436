"""The cluster in which the simulated shop runs, behind the same interface as a real one."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from adapters.kubernetes.hiding import shown
from adapters.kubernetes.kinds import EVERYWHERE, Kind, checked_name, checked_selector, kind_of
from adapters.observe.instants import from_ns
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.topology import SERVICES, Service
from tools.capabilities import (
    Clock,
    Deploy,
)
from tools.cluster_objects import (
    ClusterEvent,
    ObjectList,
    ObjectQuery,
    ObjectTable,
    PodLogQuery,
)
from tools.errors import InvalidArguments

NAMESPACE: Final = "shop"
_AGE: Final = timedelta(days=12)
_EVENTS_LAST: Final = timedelta(hours=1)  # the API server's default
_LOG_MINUTES: Final = 15


class RecordedKubernetes:
    """Pods and Deployments of one incident; they run, whatever is wrong inside them."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    async def table(self, query: ObjectQuery) -> ObjectTable:
        """Pods, Deployments; of other kinds there are none."""
        kind = kind_of(query.kind)
        checked_selector(query.selector)
        columns, rows = self._rows(kind)
        if query.name:
            rows = [row for row in rows if row[0] == checked_name(query.name)]
            if not rows:
                raise _not_found(kind, query.name)
        wanted = query.selector.removeprefix("app=")
        if query.selector:
            rows = [row for row in rows if _app_of(row[0]) == wanted]
        if query.namespace not in {"", NAMESPACE, EVERYWHERE}:
            rows = []
        if query.namespace == EVERYWHERE and kind.namespaced:
            return ObjectTable(["Namespace", *columns], [[NAMESPACE, *row] for row in rows])
        return ObjectTable(columns, rows)

    async def describe(self, query: ObjectQuery) -> dict[str, JsonValue]:
        """A Pod or a Deployment."""
        kind = kind_of(query.kind)
        name = checked_name(query.name) if query.name else ""
        service = next((s for s in SERVICES if name in _names(kind, s)), None)
        if service is None:
            raise _not_found(kind, name)
        return shown(_object(kind, name, service, self._version(service)))

    async def objects(self, query: ObjectQuery) -> ObjectList:
        """Pods and Deployments, whole."""
        kind = kind_of(query.kind)
        if query.namespace not in {"", NAMESPACE, EVERYWHERE}:
            return ObjectList([])
        found = [
            shown(_object(kind, name, service, self._version(service)))
            for service in SERVICES
            for name in _names(kind, service)
        ]
        return ObjectList(found)

    async def events(self, query: ObjectQuery) -> Sequence[ClusterEvent]:
        """The rollouts of the last hour."""
        kind = kind_of(query.kind) if query.kind else None
        name = checked_name(query.name) if query.name else ""
        return [
            ClusterEvent(
                at=deploy.at,
                kind="Deployment",
                name=deploy.product,
                type="Normal",
                reason="ScalingReplicaSet",
                message=f"Scaled up replica set {deploy.product} for {deploy.version}",
            )
            for deploy in self._deploys(self._clock.now() - _EVENTS_LAST)
            if (kind is None or kind.name == "Deployment") and name in {"", deploy.product}
        ]

    async def logs(self, query: PodLogQuery) -> Sequence[str]:
        """What the pod wrote in the last minutes, oldest first."""
        pod = checked_name(query.pod)
        service = next((s for s in SERVICES if pod in _pods(s)), None)
        if service is None or query.namespace not in {"", NAMESPACE}:
            raise InvalidArguments(f'pods "{pod}" not found')
        if query.container not in {"", service.name}:
            raise InvalidArguments(
                f"container {query.container} is not valid for pod {pod}; there is {service.name}"
            )
        if query.previous:
            raise InvalidArguments(f'previous terminated container "{service.name}" not found')
        now = self._clock.now()
        since = now - timedelta(seconds=query.since_s or _LOG_MINUTES * 60)
        lines = [
            f"{from_ns(line.ts_ns).isoformat()} {line.message}"
            for minute in self._dataset.minutes(since, now)
            for line in reversed(self._dataset.lines(service.name, minute))
            if line.host == pod and since <= from_ns(line.ts_ns) <= now
        ]
        return lines[-query.tail :]

    def _rows(self, kind: Kind) -> tuple[list[str], list[list[str]]]:
        if kind.name == "Pod":
            columns = ["Name", "Ready", "Status", "Restarts", "Age"]
            return columns, [
                [pod, "1/1", "Running", "0", self._age(service)]
                for service in SERVICES
                for pod in _pods(service)
            ]
        if kind.name == "Deployment":
            columns = ["Name", "Ready", "Up-to-date", "Available", "Age"]
            return columns, [
                [s.name, f"{s.hosts}/{s.hosts}", str(s.hosts), str(s.hosts), f"{_AGE.days}d"]
                for s in SERVICES
                if not s.datastore
            ]
        return ["Name", "Age"], []

    def _deploys(self, since: datetime) -> Sequence[Deploy]:
        found = self._dataset.scenario.deploys
        return [deploy for deploy in found if since <= deploy.at <= self._clock.now()]

    def _deployed(self, service: Service) -> Deploy | None:
        done = self._deploys(self._dataset.start)
        return max(
            (deploy for deploy in done if deploy.product == service.name),
            key=lambda deploy: deploy.at,
            default=None,
        )

    def _version(self, service: Service) -> str:
        deployed = self._deployed(service)
        return deployed.version if deployed is not None else service.version

    def _age(self, service: Service) -> str:
        deployed = self._deployed(service)
        if deployed is None:
            return f"{_AGE.days}d"
        minutes = int((self._clock.now() - deployed.at).total_seconds() // 60)
        return f"{minutes}m" if minutes < 120 else f"{minutes // 60}h"


def _pods(service: Service) -> list[str]:
    return [service.host(number) for number in range(service.hosts)]


def _names(kind: Kind, service: Service) -> Sequence[str]:
    if kind.name == "Pod":
        return _pods(service)
    return [service.name] if kind.name == "Deployment" and not service.datastore else []


def _app_of(name: str) -> str:
    return next((s.name for s in SERVICES if name == s.name or name in _pods(s)), "")


def _not_found(kind: Kind, name: str) -> InvalidArguments:
    return InvalidArguments(f'{kind.plural} "{name}" not found')


def _object(kind: Kind, name: str, service: Service, version: str) -> dict[str, JsonValue]:
    pod: dict[str, JsonValue] = {
        "containers": [
            {
                "name": service.name,
                "image": f"registry.shop.example/{service.name}:{version}",
                "env": [{"name": "DATABASE_PASSWORD", "value": "not for you"}],
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
            }
        ]
    }
    metadata: Mapping[str, JsonValue] = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {"app": service.name},
    }
    if kind.name == "Pod":
        ready: JsonValue = {"name": service.name, "ready": True, "state": {"running": {}}}
        status: dict[str, JsonValue] = {"phase": "Running", "containerStatuses": [ready]}
        return {"kind": "Pod", "metadata": dict(metadata), "spec": pod, "status": status}
    return {
        "kind": "Deployment",
        "metadata": dict(metadata),
        "spec": {"replicas": service.hosts, "template": {"spec": pod}},
        "status": {"replicas": service.hosts, "readyReplicas": service.hosts},
    }
