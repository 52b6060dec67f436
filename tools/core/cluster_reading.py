"""Reads what a sweep of the cluster looks at: a few lists of whole objects, and events."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from tools.analysis.cluster.crash import crash_reason
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.inventory import Inventory
from tools.analysis.cluster.scheduling import is_unscheduled
from tools.cluster_objects import (
    ClusterEvent,
    Kubernetes,
    KubernetesObject,
    ObjectList,
    ObjectQuery,
    PodLogQuery,
)
from tools.errors import InvalidArguments, ToolError
from tools.output import clean_words

EVERYWHERE: Final = "*"
# Pods come first: without them nothing can be said, so a failure is the result.
PODS: Final = ("pods", "Pod")
ALWAYS: Final = (
    ("nodes", "Node"),
    ("deployments", "Deployment"),
    ("statefulsets", "StatefulSet"),
    ("daemonsets", "DaemonSet"),
    ("services", "Service"),
    ("endpoints", "Endpoints"),
    ("jobs", "Job"),
    ("horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ("poddisruptionbudgets", "PodDisruptionBudget"),
    ("resourcequotas", "ResourceQuota"),
)
# Read only where nothing of a product is down: each kind costs the API server a request.
BESIDE: Final = (
    ("cronjobs", "CronJob"),
    ("ingresses", "Ingress"),
    ("networkpolicies", "NetworkPolicy"),
)
NOT_READ_BESIDE: Final = (
    f"{', '.join(plural for plural, _ in BESIDE)} were not read, because a product is down"
)
STORAGE: Final = (  # where a pod waits for a node, which may be for want of a volume
    ("persistentvolumeclaims", "PersistentVolumeClaim"),
    ("persistentvolumes", "PersistentVolume"),
    ("storageclasses", "StorageClass"),
)
OF_THE_CLUSTER: Final = frozenset({"Node", "PersistentVolume", "StorageClass"})
MOST_LOGS: Final = 3  # containers whose last lines are read, each of another product
MOST_LOG_REQUESTS: Final = 4  # a run that is gone costs one more
_TAIL: Final = 300  # a stack trace is long, and its cause is in the middle
_AT_ONCE: Final = 4
_MOST_REASON: Final = 120


class ClusterReading:
    """One look at the cluster. Counts its requests, and notes what it could not read."""

    def __init__(self, cluster: Kubernetes) -> None:
        self._cluster = cluster
        self._namespace = EVERYWHERE
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._objects: dict[str, Sequence[KubernetesObject]] = {}
        self._partial: set[str] = set()
        self._lacking: dict[str, list[str]] = defaultdict(list)
        self._odd = 0
        self._log_requests = 0
        self.requests = 0

    async def inventory(self, products: Sequence[str], now: datetime) -> Inventory:
        """All that a survey needs. Raises what Kubernetes raises where pods or events fail."""
        await self._read_pods()
        async with asyncio.TaskGroup() as group:
            events = group.create_task(self._events())
            for plural, kind in self._wanted():
                group.create_task(self._read(plural, kind))
        return await self._indexed(events.result(), products, now)

    async def beside(self, known: Inventory) -> Inventory:
        """The same with the kinds that explain what no pod shows."""
        async with asyncio.TaskGroup() as group:
            for plural, kind in BESIDE:
                group.create_task(self._read(plural, kind))
        return await self._indexed(known.events, known.products, known.now)

    async def _indexed(
        self, events: Sequence[ClusterEvent], products: Sequence[str], now: datetime
    ) -> Inventory:
        # Thousands of objects: not while the event loop waits.
        partial = frozenset(self._partial)
        return await asyncio.to_thread(Inventory, self._objects, events, products, now, partial)

    async def with_last_lines(self, found: Sequence[Finding]) -> list[Finding]:
        """The findings, the first crashes with what the container's log says of them."""
        told: set[str] = set()
        explained: list[Finding] = []
        for one in found:
            wanted = one.crashed and one.product and one.impact is not Impact.RISK
            if not wanted or one.product in told or len(told) >= MOST_LOGS:
                explained.append(one)
                continue
            told.add(one.product)
            said = await self._last_lines(one)
            explained.append(replace(one, reason=f"{one.reason}; {said}") if said else one)
        return explained

    def notes(self) -> list[str]:
        notes = [
            f"{', '.join(names)} could not be read: {why}" for why, names in self._lacking.items()
        ]
        if self._partial:
            notes.append(f"more objects exist than were read: {', '.join(sorted(self._partial))}")
        if self._odd:
            notes.append(f"{self._odd} entries of lists could not be read")
        return notes

    def _wanted(self) -> Sequence[tuple[str, str]]:
        return (*ALWAYS, *STORAGE) if any(map(is_unscheduled, self._objects["Pod"])) else ALWAYS

    async def _read_pods(self) -> None:
        try:
            found = await self._list(PODS[0])
        except InvalidArguments:  # only some namespaces may be read: the usual one
            self._namespace = ""
            found = await self._list(PODS[0])
        self._keep(PODS[1], found)

    async def _read(self, plural: str, kind: str) -> None:
        try:
            self._keep(kind, await self._list(plural))
        except ToolError as error:
            if kind in OF_THE_CLUSTER and self._namespace != EVERYWHERE:
                return  # who may read some namespaces alone sees their faults in the pods
            self._lacking[clean_words(error.message, _MOST_REASON)].append(plural)

    def _keep(self, kind: str, found: ObjectList) -> None:
        self._objects[kind] = found.objects
        self._odd += found.unread
        if found.more or found.unread:
            self._partial.add(kind)

    async def _list(self, plural: str) -> ObjectList:
        async with self._slots:
            self.requests += 1
            return await self._cluster.objects(ObjectQuery(plural, self._namespace))

    async def _events(self) -> Sequence[ClusterEvent]:
        async with self._slots:
            self.requests += 1
            try:
                return await self._cluster.events(ObjectQuery("", self._namespace))
            except InvalidArguments:
                return await self._cluster.events(ObjectQuery("", ""))

    async def _last_lines(self, one: Finding) -> str:
        """Of the run that crashed; of the one that runs where the other is gone."""
        for previous in (True, False):
            if self._log_requests == MOST_LOG_REQUESTS:
                return ""
            self._log_requests += 1
            self.requests += 1
            query = PodLogQuery(one.namespace, one.name, one.crashed, previous, _TAIL)
            try:
                lines = await self._cluster.logs(query)
            except ToolError:
                continue
            if said := crash_reason(lines):
                return f"its log ends: {said}"
        return ""
