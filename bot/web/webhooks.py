"""`POST /ingest/v1/...` for senders that have a format of their own, each checked as it can be.

GitHub and Flux sign their body; GitLab sends its secret, Alertmanager and Argo CD a bearer token.
Everything is idempotent: the senders repeat what they have no answer for.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from adapters.deploys.signature import is_signed
from adapters.ingested_event import IngestedEvent
from bot.domain.alerts import ProductOf
from bot.ports.failures import StorageUnavailable
from bot.ports.ingested_events import EventStore
from bot.web.alertmanager_events import AlertmanagerPayload
from bot.web.ingest import MAX_BYTES, IngestRefused, check_token, read_body, refusal, switched_off
from tools.capabilities import Clock
from tools.outside_json import parse
from tools.product_names import product_in

if TYPE_CHECKING:
    from adapters.deploys.argocd import ArgoNotification
    from adapters.deploys.flux import FluxNotification
    from adapters.deploys.github import DeploymentStatus
    from adapters.deploys.gitlab import DeploymentHook

ALERTMANAGER_PATH = "/ingest/v1/alertmanager"
ARGOCD_PATH = "/ingest/v1/argocd"
FLUX_PATH = "/ingest/v1/flux"
GITHUB_PATH = "/ingest/v1/github"
GITLAB_PATH = "/ingest/v1/gitlab"
_SETTINGS: Final = {
    ALERTMANAGER_PATH: "api_token",
    ARGOCD_PATH: "api_token",
    FLUX_PATH: "flux_secret",
    GITHUB_PATH: "github_secret",
    GITLAB_PATH: "gitlab_token",
}
_UNSIGNED = "the signature does not match the body"
_UNAVAILABLE = "events cannot be stored now; send again"


class _Payload(Protocol):
    def events(self, received_at: datetime) -> list[IngestedEvent]: ...


@dataclass(frozen=True, slots=True)
class _Alerts:
    payload: AlertmanagerPayload
    product_of: ProductOf

    def events(self, received_at: datetime) -> list[IngestedEvent]:
        return self.payload.events(received_at, self.product_of)


PayloadT = TypeVar(
    "PayloadT",
    AlertmanagerPayload,
    "ArgoNotification",
    "FluxNotification",
    "DeploymentStatus",
    "DeploymentHook",
)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Reader = Callable[[web.Request], Awaitable[_Payload | None]]


@dataclass(frozen=True, slots=True)
class SenderSecrets:
    """The token or signing secret of each sender; empty: all its requests are refused."""

    api_token: str = field(default="", repr=False)
    flux: str = field(default="", repr=False)
    github: str = field(default="", repr=False)
    gitlab: str = field(default="", repr=False)


def webhook_routes(
    events: EventStore, clock: Clock, secrets: SenderSecrets, product_of: ProductOf = product_in
) -> list[web.RouteDef]:
    """A route of each sender. One without a secret answers 503 and names the setting.

    The module of a sender's format is imported only when its secret is set. `product_of` gives an
    alert's product.
    """
    readers: list[tuple[str, _Reader]] = []
    if secrets.api_token:
        from adapters.deploys.argocd import ArgoNotification

        readers += [
            (ALERTMANAGER_PATH, _alerts(secrets.api_token, product_of)),
            (ARGOCD_PATH, _with_token(secrets.api_token, ArgoNotification)),
        ]
    if secrets.flux:
        readers.append((FLUX_PATH, _from_flux(secrets.flux)))
    if secrets.github:
        readers.append((GITHUB_PATH, _from_github(secrets.github)))
    if secrets.gitlab:
        readers.append((GITLAB_PATH, _from_gitlab(secrets.gitlab)))
    open_to = {path for path, _read in readers}
    return [
        *(web.post(path, _handler(events, clock, read)) for path, read in readers),
        *(
            web.post(path, switched_off(setting))
            for path, setting in _SETTINGS.items()
            if path not in open_to
        ),
    ]


def _with_token(token: str, payload: type[PayloadT]) -> _Reader:
    async def read(request: web.Request) -> _Payload:
        check_token(request, token)
        return _parsed(payload, await read_body(request, MAX_BYTES))

    return read


def _alerts(token: str, product_of: ProductOf) -> _Reader:
    async def read(request: web.Request) -> _Payload:
        check_token(request, token)
        return _Alerts(
            _parsed(AlertmanagerPayload, await read_body(request, MAX_BYTES)), product_of
        )

    return read


def _from_github(secret: str) -> _Reader:
    from adapters.deploys import github

    async def read(request: web.Request) -> _Payload | None:
        body = await read_body(request, MAX_BYTES)
        if not is_signed(request.headers.get("X-Hub-Signature-256", ""), body, secret):
            raise IngestRefused(401, "unauthorized", _UNSIGNED)
        if request.headers.get("X-GitHub-Event") != github.EVENT:
            return None
        return _parsed(github.DeploymentStatus, body)

    return read


def _from_flux(secret: str) -> _Reader:
    from adapters.deploys import flux

    async def read(request: web.Request) -> _Payload:
        body = await read_body(request, MAX_BYTES)
        if not is_signed(request.headers.get("X-Signature", ""), body, secret):
            raise IngestRefused(401, "unauthorized", _UNSIGNED)
        return _parsed(flux.FluxNotification, body)

    return read


def _from_gitlab(secret: str) -> _Reader:
    from adapters.deploys import gitlab

    async def read(request: web.Request) -> _Payload | None:
        if not gitlab.is_from(request.headers.get("X-Gitlab-Token", ""), secret):
            raise IngestRefused(401, "unauthorized", "the token is wrong")
        body = await read_body(request, MAX_BYTES)
        if request.headers.get("X-Gitlab-Event") != gitlab.EVENT:
            return None
        return _parsed(gitlab.DeploymentHook, body)

    return read


def _handler(events: EventStore, clock: Clock, read: _Reader) -> _Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            payload = await read(request)
            received_at = clock.now()
            told = payload.events(received_at) if payload is not None else []
            # A sender's clock that is ahead must not hide its events.
            found = [replace(event, at=min(event.at, received_at)) for event in told]
            added = await events.add(found)
        except IngestRefused as refused:
            return refusal(refused)
        except StorageUnavailable:
            return refusal(IngestRefused(503, "unavailable", _UNAVAILABLE))
        return web.json_response({"added": added, "known": len(found) - added})

    return handle


def _parsed(payload: type[PayloadT], body: bytes) -> PayloadT:
    try:
        return parse(TypeAdapter(payload), body)
    except ValidationError as error:
        wrapped = _application(payload, body)
        if wrapped is not None:
            return wrapped
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise IngestRefused(400, "invalid", f"{where}: {first['msg']}") from error


def _application(payload: type[PayloadT], body: bytes) -> PayloadT | None:
    from adapters.deploys.argocd import ArgoNotification

    if not issubclass(payload, ArgoNotification):
        return None
    try:
        return parse(TypeAdapter(payload), b'{"app":' + body + b"}")
    except ValidationError:
        return None
