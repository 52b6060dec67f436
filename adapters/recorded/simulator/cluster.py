"""The cluster of the simulated shop. Its pods run, also while their service is slow."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from adapters.observe.instants import from_ns
from adapters.recorded.packs.recording import RecordedLine
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.topology import SERVICES, Service
from tools.capabilities import Clock

Object = dict[str, JsonValue]

NAMESPACE: Final = "shop"
_AGE: Final = timedelta(days=12)
_EVENTS_LAST: Final = timedelta(hours=1)  # the API server's default


class SimulatedCluster:
    """Pods and Deployments, and the rollouts of the last hour as events."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    def objects(self) -> Sequence[Object]:
        """A pod for each host, a Deployment for each service that is no datastore."""
        return [one for service in SERVICES for one in self._of(service)]

    def events(self) -> Sequence[Object]:
        since = self._clock.now() - _EVENTS_LAST
        return [
            {
                "metadata": {"namespace": NAMESPACE},
                "involvedObject": {"kind": "Deployment", "name": deploy.product},
                "type": "Normal",
                "reason": "ScalingReplicaSet",
                "message": f"Scaled up replica set {deploy.product} for {deploy.version}",
                "lastTimestamp": deploy.at.isoformat(),
            }
            for deploy in self._dataset.deploys(self._clock.now())
            if since <= deploy.at
        ]

    def lines(self, pod: str, since_s: int) -> Sequence[RecordedLine]:
        """What a pod wrote in the last seconds, with the time in front as kubectl prints it."""
        service = next((one for one in SERVICES if pod in _pods(one)), None)
        if service is None:
            return ()
        now = self._clock.now()
        since = now - timedelta(seconds=since_s)
        labels = {"pod": pod, "container": service.name}
        return [
            RecordedLine(line.ts_ns, labels, f"{at.isoformat()} {line.message}", line.trace_id)
            for minute in self._dataset.minutes(since, now)
            for line in reversed(self._dataset.lines(service.name, minute))
            if line.host == pod and since <= (at := from_ns(line.ts_ns)) <= now
        ]

    def _of(self, service: Service) -> Sequence[Object]:
        newest = next(iter(self._dataset.deploys(self._clock.now(), service.name)), None)
        long_ago = self._clock.now() - _AGE
        pod_spec: JsonValue = {
            "containers": [
                {
                    "name": service.name,
                    "image": f"registry.shop.example/{service.name}:"
                    f"{newest.version if newest else service.version}",
                    "env": [{"name": "DATABASE_PASSWORD", "value": "not for you"}],
                    "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
                }
            ]
        }
        ready: JsonValue = {"name": service.name, "ready": True, "state": {"running": {}}}
        pods: list[Object] = [
            {
                "kind": "Pod",
                "metadata": _metadata(pod, service, newest.at if newest else long_ago),
                "spec": pod_spec,
                "status": {"phase": "Running", "containerStatuses": [ready]},
            }
            for pod in _pods(service)
        ]
        deployment: Object = {
            "kind": "Deployment",
            "metadata": _metadata(service.name, service, long_ago),
            "spec": {"replicas": service.hosts, "template": {"spec": pod_spec}},
            "status": dict.fromkeys(_COUNTS, service.hosts),
        }
        return pods if service.datastore else [*pods, deployment]


_COUNTS: Final = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")


def _metadata(name: str, service: Service, created: datetime) -> JsonValue:
    return {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {"app": service.name},
        "creationTimestamp": created.isoformat(),
    }


def _pods(service: Service) -> Sequence[str]:
    return [service.host(number) for number in range(service.hosts)]
