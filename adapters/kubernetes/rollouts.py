"""Rollouts of Deployments as deploys, read from the ReplicaSets they left behind.

There is no object for a rollout. A Deployment keeps ten ReplicaSets, ordered by their revision. A
rollback gives the old ReplicaSet a new revision, so its creation is not when it was rolled out:
that is the Deployment's Progressing condition, for the newest one.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import Field, TypeAdapter

from adapters.kubernetes.api import KubernetesApi, parsed
from adapters.kubernetes.kinds import checked_namespace
from tools.capabilities import Deploy, Interval
from tools.errors import InvalidArguments
from tools.outside_json import Entries, OutsideModel, SetInstant, Texts
from tools.product_names import product_in

_REVISION: Final = "deployment.kubernetes.io/revision"
_HISTORY: Final = "deployment.kubernetes.io/revision-history"
_LIMIT: Final = "500"


class _Owner(OutsideModel):
    uid: str = ""


class _Metadata(OutsideModel):
    name: str = ""
    uid: str = ""
    labels: Texts = Field(default_factory=dict)
    annotations: Texts = Field(default_factory=dict)
    created: SetInstant = Field(default=None, alias="creationTimestamp")
    owners: Entries[_Owner] = Field(default_factory=list, alias="ownerReferences")


class _Container(OutsideModel):
    image: str = ""


class _PodSpec(OutsideModel):
    containers: Entries[_Container] = Field(default_factory=list)


class _Template(OutsideModel):
    spec: _PodSpec = _PodSpec()


class _Spec(OutsideModel):
    template: _Template = _Template()


class _Condition(OutsideModel):
    type: str = ""
    status: str = ""
    reason: str = ""
    updated: SetInstant = Field(default=None, alias="lastUpdateTime")


class _Status(OutsideModel):
    conditions: Entries[_Condition] = Field(default_factory=list)


class _Item(OutsideModel):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def revision(self) -> int:
        """0 when it is not numbered."""
        text = self.metadata.annotations.get(_REVISION, "")
        return int(text) if text.isdecimal() else 0

    @property
    def version(self) -> str:
        image = next((one.image for one in self.spec.template.spec.containers), "")
        _, at, digest = image.partition("@")
        name, colon, tag = image.split("@", 1)[0].rpartition(":")
        return tag if colon and "/" not in tag and name else digest[:19] if at else image


class _List(OutsideModel):
    items: Entries[_Item] = Field(default_factory=list)


_LIST: Final = TypeAdapter(_List)


class KubernetesRollouts:
    """`tools.capabilities.Deploys`.

    A Deployment's product is found as an alert's is: by its labels, the preferred first, or its name.
    """

    def __init__(
        self, api: KubernetesApi, preferred_labels: Sequence[str], namespaces: Sequence[str]
    ) -> None:
        self._api = api
        self._preferred = preferred_labels
        self._namespaces = [checked_namespace(one) for one in namespaces] or [api.namespace]

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        """Newest first. Raises UpstreamFailed, CapabilityUnavailable."""
        found: list[Deploy] = []
        for namespace in self._namespaces:
            deployments = await self._list("deployments", namespace)
            sets = await self._list("replicasets", namespace)
            for one in deployments:
                labels = {
                    **one.metadata.labels,
                    "namespace": namespace,
                    "deployment": one.metadata.name,
                }
                named = product_in(labels, (), self._preferred)
                asked = product_in(labels, (product,), self._preferred)
                if product in {"*", named, asked}:
                    found += _deploys(named, one, sets)
        inside = [deploy for deploy in found if interval.start <= deploy.at < interval.end]
        return sorted(inside, key=lambda deploy: deploy.at, reverse=True)

    async def _list(self, plural: str, namespace: str) -> Sequence[_Item]:
        path = f"/apis/apps/v1/namespaces/{namespace}/{plural}"
        try:
            return parsed(_LIST, await self._api.get(path, {"limit": _LIMIT})).items
        except InvalidArguments:
            return []  # a namespace that is gone has no rollouts


def _deploys(product: str, deployment: _Item, sets: Sequence[_Item]) -> Iterator[Deploy]:
    uid = deployment.metadata.uid
    own = [one for one in sets if any(owner.uid == uid for owner in one.metadata.owners)]
    ordered = sorted(own, key=lambda one: one.revision)
    previous = ""
    for one in ordered:
        is_newest = one is ordered[-1]
        is_rollback = _HISTORY in one.metadata.annotations
        condition = _progressing(deployment) if is_newest else None
        at = one.metadata.created
        if is_rollback:
            at = condition.updated if condition is not None else None
        if at is not None:
            yield Deploy(
                product=product,
                version=one.version or "unknown",
                at=at,
                actor="kubernetes",
                status=_outcome(condition, is_rollback=is_rollback),
                previous_version=previous,
            )
        previous = one.version


def _progressing(deployment: _Item) -> _Condition | None:
    conditions = deployment.status.conditions
    return next((one for one in conditions if one.type == "Progressing"), None)


def _outcome(condition: _Condition | None, *, is_rollback: bool) -> str:
    if condition is not None and condition.status == "False":
        return "failed"
    if condition is not None and condition.reason == "ReplicaSetUpdated":
        return "running"
    return "rolled_back" if is_rollback else "ok"
