"""An Argo CD Application as deploys: as a notification sends it, and asked for.

The body is the Application itself or `{"app": <Application>}`. Its last ten syncs come with every
notification, so one that was lost is made up for by the next. A failed sync is only in
`status.operationState`. https://argo-cd.readthedocs.io/en/stable/operator-manual/notifications/
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import httpx
from pydantic import (
    AliasChoices,
    Field,
    JsonValue,
    TypeAdapter,
)

from adapters.deploys.feed import Name, Number, Words, asked
from adapters.ingested_event import IngestedEvent
from tools.outside_json import Entries, Lenient, OutsideModel, SetInstant

SOURCE = "argocd"
_FAILED = frozenset({"Failed", "Error"})


class _Initiator(OutsideModel):
    username: Name = ""
    automated: bool = False


class _Sync(OutsideModel):
    id: Number
    revision: Name = ""
    revisions: Entries[Name] = Field(default_factory=list)
    started_at: Lenient[SetInstant] = Field(default=None, alias="deployStartedAt")
    deployed_at: Lenient[SetInstant] = Field(default=None, alias="deployedAt")
    by: _Initiator = Field(default=_Initiator(), alias="initiatedBy")

    @property
    def at(self) -> datetime | None:
        return self.deployed_at or self.started_at


class _SyncResult(OutsideModel):
    revision: Name = ""
    revisions: Entries[Name] = Field(default_factory=list)


class _Operation(OutsideModel):
    phase: str = ""
    message: Lenient[Words] = ""
    started_at: Lenient[SetInstant] = Field(default=None, alias="startedAt")
    finished_at: Lenient[SetInstant] = Field(default=None, alias="finishedAt")
    result: Lenient[_SyncResult | None] = Field(default=None, alias="syncResult")


class _Summary(OutsideModel):
    images: Entries[Name] = Field(default_factory=list)


class _Status(OutsideModel):
    history: Entries[_Sync] = Field(default_factory=list, max_length=1000)
    operation: Lenient[_Operation | None] = Field(default=None, alias="operationState")
    summary: Lenient[_Summary] = _Summary()


class _Metadata(OutsideModel):
    name: str = Field(min_length=1, max_length=253)
    namespace: str = Field(default="", max_length=253)


class _Application(OutsideModel):
    metadata: _Metadata
    status: _Status = _Status()


class ArgoNotification(OutsideModel):
    """The body of one delivery of Argo CD notifications."""

    app: _Application = Field(validation_alias=AliasChoices("app", "application"))

    def events(self, received_at: datetime) -> list[IngestedEvent]:
        """Every sync with a time, and the last one when it failed.

        Without any, the newest sync ended at the receipt: Argo CD does not send it again.
        """
        newest = max(self.app.status.history, key=lambda sync: sync.id, default=None)
        alone = [self._synced(newest, received_at)] if newest is not None else []
        return self.timed(received_at) or alone

    def timed(self, read_at: datetime) -> list[IngestedEvent]:
        """Every sync with a time, and the last one when it failed."""
        status = self.app.status
        found = [self._synced(sync, sync.at) for sync in status.history if sync.at is not None]
        return found + self._failure(status.operation, read_at)

    def _synced(self, sync: _Sync, at: datetime) -> IngestedEvent:
        status = self.app.status
        is_newest = sync.id == max(one.id for one in status.history)
        data: dict[str, JsonValue] = {
            "version": _revision(sync.revision, sync.revisions),
            "commit": sync.revision,
            "actor": sync.by.username or ("argocd" if sync.by.automated else ""),
            "status": "ok",
            "duration_s": _seconds(sync.started_at, at),
            "images": list(status.summary.images) if is_newest else [],
        }
        # Each instance of Argo CD counts from 0: of two, one would hide the other's.
        key = f"sync/{sync.id}/{sync.at.isoformat() if sync.at else 'untimed'}"
        return self._event(key, at, "succeeded", data)

    def _failure(self, operation: _Operation | None, received_at: datetime) -> list[IngestedEvent]:
        if operation is None or operation.phase not in _FAILED:
            return []
        started = operation.started_at or operation.finished_at
        result = operation.result or _SyncResult()
        data: dict[str, JsonValue] = {
            "version": _revision(result.revision, result.revisions),
            "commit": result.revision,
            "status": "failed",
            "description": operation.message,
        }
        at = operation.finished_at or started or received_at
        key = f"failed/{started.isoformat() if started else 'untimed'}"
        return [self._event(key, at, "failed", data)]

    def _event(
        self, key: str, at: datetime, outcome: str, data: dict[str, JsonValue]
    ) -> IngestedEvent:
        about = self.app.metadata
        return IngestedEvent(
            id=f"{about.namespace}/{about.name}/{key}",
            source=SOURCE,
            type=f"io.argoproj.deploy.{outcome}",
            product=about.name,
            at=at,
            data=data,
        )


class _Applications(OutsideModel):
    items: Entries[_Application] = Field(default_factory=list)


_APPLICATIONS: Final = TypeAdapter(_Applications)


class ArgoDeploys:
    """`DeployFeed` of every Application that the token may see; of `projects` alone, if any."""

    def __init__(self, client: httpx.AsyncClient, projects: Sequence[str]) -> None:
        self._client = client
        self._query = httpx.QueryParams([("projects", name) for name in projects])

    async def since(self, at: datetime) -> Sequence[IngestedEvent]:
        """Of the last ten syncs of each Application. See `DeployFeed.since`."""
        path = "api/v1/applications"
        answer = await asked(self._client, SOURCE, path, _APPLICATIONS, self._query)
        now = datetime.now(UTC)
        return [
            event
            for app in answer.items
            for event in ArgoNotification(app=app).timed(now)
            if event.at >= at
        ]


def _revision(revision: str, revisions: Sequence[str]) -> str:
    found = revision or next(iter(revisions), "")
    return found[:12] if len(found) == 40 else found


def _seconds(start: datetime | None, end: datetime) -> float | None:
    return None if start is None else max(0.0, (end - start).total_seconds())
