"""GitHub's deployments as deploys: its `deployment_status` webhook with its signature, and asked for.

A deployment has no state of its own, its statuses do: the final ones are events, each once per
deployment, so a redelivery changes nothing. Other events are taken and ignored.
https://docs.github.com/en/webhooks/webhook-events-and-payloads#deployment_status
https://docs.github.com/en/rest/deployments
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote

import httpx
from pydantic import AwareDatetime, Field, JsonValue, TypeAdapter

from adapters.deploys.feed import Name, Number, Words, asked
from adapters.ingested_event import IngestedEvent
from tools.outside_json import (
    Entries,
    Lenient,
    OutsideModel,
    RequiredInstant,
    SetInstant,
    set_instant,
)

SOURCE = "github"
EVENT = "deployment_status"
_FINAL: Final = {"success": "ok", "failure": "failed", "error": "failed"}
_NEWEST: Final = 30  # deployments of a repository that are looked at


class _Login(OutsideModel):
    login: Name = ""


class _Repository(OutsideModel):
    full_name: Name = Field(min_length=1)


class _HookDeployment(OutsideModel):
    id: Number
    sha: Lenient[Name] = ""
    ref: Lenient[Name] = ""
    environment: Lenient[Name] = ""
    creator: Lenient[_Login | None] = None
    created_at: Lenient[AwareDatetime | None] = None


class _Deployment(_HookDeployment):
    created_at: RequiredInstant
    updated_at: SetInstant = None

    @property
    def changed_at(self) -> datetime:
        return self.updated_at or self.created_at


class _HookStatus(OutsideModel):
    state: Name
    created_at: Lenient[AwareDatetime | None] = None
    description: Lenient[Words | None] = None


class _Status(_HookStatus):
    created_at: RequiredInstant


_DEPLOYMENTS: Final = TypeAdapter(Entries[_Deployment])
_STATUSES: Final = TypeAdapter(Entries[_Status])


class DeploymentStatus(OutsideModel):
    """The body of one `deployment_status` delivery, which GitHub sends once."""

    status: _HookStatus = Field(alias="deployment_status")
    deployment: _HookDeployment
    repository: _Repository

    def events(self, received_at: datetime) -> list[IngestedEvent]:
        """The deploy, when it has ended. The product is the repository's name."""
        if self.status.state not in _FINAL:
            return []
        at = set_instant(self.status.created_at) or received_at
        return [_event(self.repository.full_name, self.deployment, self.status, at)]


def _event(
    repository: str, made: _HookDeployment, status: _HookStatus, at: datetime
) -> IngestedEvent:
    created_at = set_instant(made.created_at)
    data: dict[str, JsonValue] = {
        "version": made.ref or made.sha[:12],
        "commit": made.sha,
        "actor": made.creator.login if made.creator else "",
        "status": _FINAL[status.state],
        "environment": made.environment,
        "duration_s": max(0.0, (at - created_at).total_seconds()) if created_at else None,
        "description": status.description or "",
    }
    return IngestedEvent(
        id=f"{repository}/{made.id}/{status.state}",
        source=SOURCE,
        type=f"com.github.deployment.{status.state}",
        product=repository.rpartition("/")[2],
        at=at,
        data=data,
    )


class GitHubDeploys:
    """`DeployFeed` of a repository, `owner/name`. Not more than once a minute where there are many:

    a token has 5,000 requests an hour (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
    One asks for a repository's deployments, one more for the statuses of each that changed.
    """

    def __init__(self, client: httpx.AsyncClient, repository: str) -> None:
        self._client = client
        self._repository = repository
        self._read: Mapping[tuple[int, datetime], Sequence[IngestedEvent]] = {}

    async def since(self, at: datetime) -> Sequence[IngestedEvent]:
        path = f"repos/{quote(self._repository)}/deployments"
        newest = {"per_page": str(_NEWEST)}
        read: dict[tuple[int, datetime], Sequence[IngestedEvent]] = {}
        for each in await asked(self._client, SOURCE, path, _DEPLOYMENTS, newest):
            if each.changed_at < at:
                continue
            state = each.id, each.changed_at
            # Sent again, not left out: it may not have been stored.
            known = self._read.get(state)
            read[state] = await self._events(path, each) if known is None else known
        self._read = read
        return [event for events in read.values() for event in events]

    async def _events(self, path: str, made: _Deployment) -> Sequence[IngestedEvent]:
        statuses = await asked(
            self._client, SOURCE, f"{path}/{made.id}/statuses", _STATUSES, {"per_page": "100"}
        )
        return [
            _event(self._repository, made, status, status.created_at)
            for status in statuses
            if status.state in _FINAL
        ]
