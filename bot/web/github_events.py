"""GitHub's `deployment_status` webhook as deploys, and its signature.

A deployment has no state of its own, its statuses do: the final ones are events, each once per
deployment, so a redelivery changes nothing. Other events are taken and ignored.
https://docs.github.com/en/webhooks/webhook-events-and-payloads#deployment_status
"""

import hashlib
import hmac
from datetime import datetime

from pydantic import AwareDatetime, BaseModel, Field, JsonValue

from bot.ports.ingested_events import IngestedEvent

SOURCE = "github"
EVENT = "deployment_status"
_FINAL = {"success": "ok", "failure": "failed", "error": "failed"}


class _Login(BaseModel):
    login: str = ""


class _Repository(BaseModel):
    name: str
    full_name: str


class _Deployment(BaseModel):
    id: int
    sha: str = ""
    ref: str = ""
    environment: str = ""
    creator: _Login | None = None
    created_at: AwareDatetime


class _Status(BaseModel):
    state: str
    created_at: AwareDatetime
    description: str | None = None


class DeploymentStatus(BaseModel):
    """The body of one `deployment_status` delivery."""

    status: _Status = Field(alias="deployment_status")
    deployment: _Deployment
    repository: _Repository

    def events(self, received_at: datetime) -> list[IngestedEvent]:
        """The deploy, when it has ended. The product is the repository's name."""
        del received_at  # GitHub says itself when it was
        outcome = _FINAL.get(self.status.state)
        if outcome is None:
            return []
        made = self.deployment
        took = self.status.created_at - made.created_at
        data: dict[str, JsonValue] = {
            "version": made.ref or made.sha[:12],
            "commit": made.sha,
            "actor": made.creator.login if made.creator else "",
            "status": outcome,
            "environment": made.environment,
            "duration_s": max(0.0, took.total_seconds()),
            "description": self.status.description or "",
        }
        return [
            IngestedEvent(
                id=f"{self.repository.full_name}/{made.id}/{self.status.state}",
                source=SOURCE,
                type=f"com.github.deployment.{self.status.state}",
                product=self.repository.name,
                at=self.status.created_at,
                data=data,
            )
        ]


def is_signed(header: str, body: bytes, secret: str) -> bool:
    """Whether `X-Hub-Signature-256` fits the raw body."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(header.encode("utf-8", "replace"), expected.encode())
