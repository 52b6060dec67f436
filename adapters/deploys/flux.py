"""Flux's Kustomizations and HelmReleases as deploys: its notifications, and read from the cluster.

A reconciliation has no number, and Flux reports the same state again when it corrects drift. So an
object is a deploy's course, and each revision with its result is a step.
https://fluxcd.io/flux/components/notification/events/
https://fluxcd.io/flux/components/kustomize/kustomizations/#kustomization-status
https://fluxcd.io/flux/components/helm/helmreleases/#helmrelease-status
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Literal

from pydantic import Field, JsonValue, TypeAdapter

from adapters.deploys.feed import Name, Number
from adapters.ingested_event import IngestedEvent
from adapters.kubernetes.api import KubernetesApi, parsed
from adapters.kubernetes.kinds import checked_namespace
from tools.errors import InvalidArguments
from tools.outside_json import Entries, Lenient, OutsideModel, RequiredInstant, SetInstant

SOURCE: Final = "flux"
_WENT_WELL: Final = {
    "ReconciliationSucceeded": "ok",
    "InstallSucceeded": "ok",
    "UpgradeSucceeded": "ok",
    "RollbackSucceeded": "rolled_back",
}
# A deploy that waits for another one has not failed.
_WAITS: Final = frozenset({"DependencyNotReady", "Progressing", "ProgressingWithRetry"})
_RELEASE: Final = re.compile(
    r"\.(v\d{1,9}) with chart "
)  # "release shop/cart.v3 with chart cart@1.2"
_PATHS: Final = (
    ("Kustomization", "/apis/kustomize.toolkit.fluxcd.io/v1", "kustomizations"),
    ("HelmRelease", "/apis/helm.toolkit.fluxcd.io/v2", "helmreleases"),
)
_LIMIT: Final = "500"


class _Object(OutsideModel):
    kind: Name
    namespace: str = Field(default="", max_length=253)
    name: str = Field(min_length=1, max_length=253)


class FluxNotification(OutsideModel):
    """The body that a provider of type `generic-hmac` posts."""

    about: _Object = Field(alias="involvedObject")
    severity: Literal["info", "error", "trace"]
    reason: Name
    message: Lenient[str] = ""
    at: Lenient[SetInstant] = Field(default=None, alias="timestamp")
    metadata: Lenient[dict[str, Name | None]] = Field(default_factory=dict)

    def events(self, received_at: datetime) -> list[IngestedEvent]:
        """The deploy of a Kustomization or HelmRelease. The product is the object's name."""
        outcome = _WENT_WELL.get(self.reason) if self.severity == "info" else "failed"
        if outcome is None or self.reason in _WAITS or self.about.kind not in _KINDS:
            return []
        # Depending on the release of Flux the key has its group before it.
        told = {key.rpartition("/")[2]: value or "" for key, value in self.metadata.items()}
        numbered = _RELEASE.search(self.message)
        release = numbered[1] if numbered else ""
        at = self.at or received_at
        return [_event(self.about, told.get("revision", ""), release, outcome, at)]


_KINDS: Final = frozenset(kind for kind, _, _ in _PATHS)


class _Named(OutsideModel):
    name: Name
    namespace: str = ""


class _Condition(OutsideModel):
    type: str = ""
    status: str = ""
    reason: str = ""
    at: RequiredInstant = Field(alias="lastTransitionTime")


class _Release(OutsideModel):
    number: Number = Field(alias="version")
    chart_version: Name = Field(default="", alias="chartVersion")
    status: str = ""
    at: RequiredInstant = Field(alias="lastDeployed")


class _Status(OutsideModel):
    conditions: Entries[_Condition] = Field(default_factory=list)
    applied: Name = Field(default="", alias="lastAppliedRevision")
    attempted: Name = Field(default="", alias="lastAttemptedRevision")
    history: Entries[_Release] = Field(default_factory=list)


class _Item(OutsideModel):
    metadata: _Named
    status: _Status = _Status()


class _List(OutsideModel):
    items: Entries[_Item] = Field(default_factory=list)


_LIST: Final = TypeAdapter(_List)


class FluxDeploys:
    """`DeployFeed` of a readable namespace. Empty for a cluster without Flux."""

    def __init__(self, api: KubernetesApi, namespace: str = "") -> None:
        """Without a name, the namespace of the identity."""
        self._api = api
        self._namespace = checked_namespace(namespace or api.namespace)

    async def since(self, at: datetime) -> Sequence[IngestedEvent]:
        found: list[IngestedEvent] = []
        for kind, group, plural in _PATHS:
            for item in await self._items(f"{group}/namespaces/{self._namespace}/{plural}"):
                about = _Object(kind=kind, namespace=self._namespace, name=item.metadata.name)
                told = _released if kind == "HelmRelease" else _reconciled
                found += [event for event in told(about, item.status) if event.at >= at]
        return found

    async def _items(self, path: str) -> Sequence[_Item]:
        try:
            return parsed(_LIST, await self._api.get(path, {"limit": _LIMIT})).items
        except InvalidArguments:
            return []  # Flux is not installed, or the namespace is gone


def _reconciled(about: _Object, status: _Status) -> Iterator[IngestedEvent]:
    ready = next((one for one in status.conditions if one.type == "Ready"), None)
    if ready is None or ready.status == "Unknown" or ready.reason in _WAITS:
        return
    went_well = ready.status == "True"
    revision = status.applied if went_well else status.attempted or status.applied
    if revision:
        yield _event(about, revision, "", "ok" if went_well else "failed", ready.at)


def _released(about: _Object, status: _Status) -> Iterator[IngestedEvent]:
    newest = max(status.history, key=lambda one: one.number, default=None)
    outcome = {"deployed": "ok", "failed": "failed"}.get(newest.status) if newest else None
    if newest is not None and outcome is not None:
        yield _event(about, newest.chart_version, f"v{newest.number}", outcome, newest.at)


def _event(
    about: _Object, revision: str, release: str, outcome: str, at: datetime
) -> IngestedEvent:
    """A release is known by its number, which names it in both; else by its revision."""
    course = f"{about.kind}/{about.namespace}/{about.name}"
    step = f"{release or revision}/{'failed' if outcome == 'failed' else 'ok'}"
    _, at_sign, commit = revision.rpartition("@")
    data: dict[str, JsonValue] = {
        "version": revision or release or "unknown",
        "commit": commit.rpartition(":")[2] if at_sign else "",
        "actor": "flux",
        "status": outcome,
        "release": release,
    }
    return IngestedEvent(
        id=f"{course}/{step}/{at.isoformat()}",
        source=SOURCE,
        type=f"io.fluxcd.deploy.{'failed' if outcome == 'failed' else 'succeeded'}",
        product=about.name,
        at=at,
        data=data,
        course=course,
        step=step,
    )
