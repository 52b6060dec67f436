"""GitLab's deployments as deploys: its deployment webhook, and asked for.

A deployment is one event for each final status; its number is the instance's, the same in both.
https://docs.gitlab.com/user/project/integrations/webhook_events/#deployment-events
https://docs.gitlab.com/api/deployments/
"""

import hmac
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final
from urllib.parse import quote

import httpx
from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    JsonValue,
    TypeAdapter,
)

from adapters.deploys.feed import Name, Number, asked
from adapters.ingested_event import IngestedEvent
from tools.outside_json import (
    Entries,
    Lenient,
    OutsideModel,
    RequiredInstant,
    SetInstant,
    set_instant,
)

SOURCE: Final = "gitlab"
EVENT: Final = "Deployment Hook"  # of the header X-Gitlab-Event
_FINAL: Final = {"success": "ok", "failed": "failed"}
_NEWEST: Final = "100"  # the most of a page; https://docs.gitlab.com/api/rest/#pagination


def _iso(text: object) -> object:
    """A webhook writes `2021-04-28 21:50:00 +0200`, or ends in ` UTC`."""
    if not isinstance(text, str):
        return text
    return re.sub(r" ([+-]\d{2}):?(\d{2})$", r"\1:\2", text.strip().replace(" UTC", "Z"))


Instant = Annotated[AwareDatetime, BeforeValidator(_iso)]


class _User(OutsideModel):
    username: Name = ""


class _HookProject(OutsideModel):
    path: Name = Field(alias="path_with_namespace", min_length=1)


class DeploymentHook(OutsideModel):
    status: Name
    changed_at: Lenient[Instant | None] = Field(default=None, alias="status_changed_at")
    id: Number = Field(alias="deployment_id")
    environment: Lenient[Name] = ""
    project: _HookProject
    short_sha: Lenient[Name] = ""
    ref: Lenient[Name] = ""
    user: Lenient[_User | None] = None

    def events(self, received_at: datetime) -> list[IngestedEvent]:
        """The deploy, when it has ended. The product is the last part of the project's path."""
        if self.status not in _FINAL:
            return []
        at = set_instant(self.changed_at) or received_at
        data: dict[str, JsonValue] = {
            "version": self.ref or self.short_sha,
            "commit": self.short_sha,
            "actor": self.user.username if self.user else "",
            "environment": self.environment,
        }
        return [_event(self.project.path, self.id, self.status, at, data)]


class _Environment(OutsideModel):
    name: Name = ""


class _Deployment(OutsideModel):
    id: Number
    status: Name
    sha: Name = ""
    ref: Name = ""
    created_at: SetInstant = None
    updated_at: RequiredInstant
    user: _User | None = None
    environment: _Environment | None = None


class _Project(OutsideModel):
    path: Name = Field(alias="path_with_namespace", min_length=1)


_DEPLOYMENTS: Final = TypeAdapter(Entries[_Deployment])
_PROJECT: Final = TypeAdapter(_Project)


class GitLabDeploys:
    """`DeployFeed` of a project, by path or number. A renamed one keeps its name until a restart."""

    def __init__(self, client: httpx.AsyncClient, project: str) -> None:
        self._client = client
        self._where = f"api/v4/projects/{quote(project, safe='')}"
        self._path = ""

    async def since(self, at: datetime) -> Sequence[IngestedEvent]:
        """Of the hundred that changed last. See `DeployFeed.since`."""
        params = {
            "order_by": "updated_at",
            "sort": "desc",
            "updated_after": at.isoformat(),
            "per_page": _NEWEST,
        }
        where = f"{self._where}/deployments"
        listed = await asked(self._client, SOURCE, where, _DEPLOYMENTS, params)
        ended = [each for each in listed if each.status in _FINAL]
        if ended and not self._path:
            self._path = (await asked(self._client, SOURCE, self._where, _PROJECT)).path
        return [_listed(self._path, each) for each in ended]


def _listed(path: str, made: _Deployment) -> IngestedEvent:
    data: dict[str, JsonValue] = {
        "version": made.ref or made.sha[:12],
        "commit": made.sha,
        "actor": made.user.username if made.user else "",
        "environment": made.environment.name if made.environment else "",
        "duration_s": (
            max(0.0, (made.updated_at - made.created_at).total_seconds())
            if made.created_at
            else None
        ),
    }
    return _event(path, made.id, made.status, made.updated_at, data)


def _event(
    path: str, number: int, status: str, at: datetime, data: dict[str, JsonValue]
) -> IngestedEvent:
    return IngestedEvent(
        id=f"{path}/{number}/{status}",
        source=SOURCE,
        type=f"com.gitlab.deployment.{status}",
        product=path.rpartition("/")[2],
        at=at,
        data={**data, "status": _FINAL[status]},
    )


def is_from(header: str, secret: str) -> bool:
    """Whether `X-Gitlab-Token` is the secret, which GitLab sends as it is."""
    return hmac.compare_digest(header.encode("utf-8", "replace"), secret.encode())
