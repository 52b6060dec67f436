"""GitHub's deployments as deploys: its `deployment_status` webhook with its signature, and asked for.

A deployment has no state of its own, its statuses do: the final ones are events, each once per
deployment, so a redelivery changes nothing. Other events are taken and ignored.
https://docs.github.com/en/webhooks/webhook-events-and-payloads#deployment_status
https://docs.github.com/en/rest/deployments
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote

import httpx
from pydantic import AwareDatetime, BaseModel, Field, JsonValue, TypeAdapter

from adapters.deploys.feed import asked, readable
from adapters.told import IngestedEvent

SOURCE = "github"
EVENT = "deployment_status"
_FINAL: Final = {"success": "ok", "failure": "failed", "error": "failed"}
_NEWEST: Final = 30  # deployments of a repository that are looked at


class _Login(BaseModel):
    login: str = ""


class _Repository(BaseModel):
    full_name: str


class _Deployment(BaseModel):
    id: int
    sha: str = ""
    ref: str = ""
    environment: str = ""
    creator: _Login | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime | None = None

    @property
    def changed_at(self) -> datetime:
        """When it got its last status."""
        return self.updated_at or self.created_at


class _Status(BaseModel):
    state: str
    created_at: AwareDatetime
    description: str | None = None


_LIST: Final = TypeAdapter(list[JsonValue])
_DEPLOYMENT: Final = TypeAdapter(_Deployment)
_STATUS: Final = TypeAdapter(_Status)


class DeploymentStatus(BaseModel):
    """The body of one `deployment_status` delivery."""

    status: _Status = Field(alias="deployment_status")
    deployment: _Deployment
    repository: _Repository

    def events(self, received_at: datetime) -> list[IngestedEvent]:
        """The deploy, when it has ended. The product is the repository's name."""
        del received_at  # GitHub says itself when it was
        return _events(self.repository.full_name, self.deployment, [self.status])


def _events(repository: str, made: _Deployment, statuses: Iterable[_Status]) -> list[IngestedEvent]:
    return [
        _event(repository, made, status, _FINAL[status.state])
        for status in statuses
        if status.state in _FINAL
    ]


def _event(repository: str, made: _Deployment, status: _Status, outcome: str) -> IngestedEvent:
    took = status.created_at - made.created_at
    data: dict[str, JsonValue] = {
        "version": made.ref or made.sha[:12],
        "commit": made.sha,
        "actor": made.creator.login if made.creator else "",
        "status": outcome,
        "environment": made.environment,
        "duration_s": max(0.0, took.total_seconds()),
        "description": status.description or "",
    }
    return IngestedEvent(
        id=f"{repository}/{made.id}/{status.state}",
        source=SOURCE,
        type=f"com.github.deployment.{status.state}",
        product=repository.rpartition("/")[2],
        at=status.created_at,
        data=data,
    )


class GitHubDeploys:
    """`DeployFeed` of repositories, `owner/name`. Not more than once a minute for many of them:

    a token has 5,000 requests an hour (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
    One asks for a repository's deployments, one more for the statuses of each that changed.
    """

    def __init__(self, client: httpx.AsyncClient, repositories: Sequence[str]) -> None:
        self._client = client
        self._repositories = repositories
        self._read: dict[str, Mapping[int, datetime]] = {}

    async def since(self, at: datetime) -> Sequence[IngestedEvent]:
        """Of the newest deployments. See `DeployFeed.since`."""
        found: list[IngestedEvent] = []
        for repository in self._repositories:
            found += await self._of(repository, at)
        return found

    async def _of(self, repository: str, at: datetime) -> Sequence[IngestedEvent]:
        path = f"repos/{quote(repository)}/deployments"
        listed = await asked(self._client, SOURCE, path, _LIST, {"per_page": str(_NEWEST)})
        made = [each for each in readable(listed, _DEPLOYMENT) if each.changed_at >= at]
        before = self._read.get(repository, {})
        found: list[IngestedEvent] = []
        for each in made:
            if before.get(each.id) == each.changed_at:
                continue
            statuses = await asked(
                self._client, SOURCE, f"{path}/{each.id}/statuses", _LIST, {"per_page": "100"}
            )
            found += _events(repository, each, readable(statuses, _STATUS))
        self._read[repository] = {each.id: each.changed_at for each in made}
        return found
