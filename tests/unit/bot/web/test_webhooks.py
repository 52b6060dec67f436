"""GitHub, GitLab, Argo CD, Flux and Alertmanager: authentication, accepted events, and repeated deliveries."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from adapters.ingested_event import IngestedEvent
from bot.alerts.intake import IntakeCounts
from bot.domain.alerts import Alert
from bot.ports.failures import StorageUnavailable
from bot.ports.ingested_events import EventStore
from bot.store.database import Database
from bot.store.incidents import StoredIncidents
from bot.store.ingested_events import StoredDeploys, StoredEvents
from bot.web.alerts import alert_routes
from bot.web.webhooks import (
    ALERTMANAGER_PATH,
    ARGOCD_PATH,
    FLUX_PATH,
    GITHUB_PATH,
    GITLAB_PATH,
    SenderSecrets,
    webhook_routes,
)
from tests.fakes.deploy_systems import FLUX_WEBHOOK, GITLAB_WEBHOOK
from tests.fakes.set_clock import SetClock
from tests.fakes.stores import MemoryEvents
from tests.fixtures_database import database, database_url
from tests.odd_json import LABEL_TEXTS, NO_INSTANTS
from tools.capabilities import Deploy, IncidentQuery, Interval

__all__ = ["database", "database_url"]

NOW = datetime(2026, 4, 7, 15, 0, tzinfo=UTC)
TOKEN, SECRET = "token-of-the-test", "secret-of-the-test"
SECRETS = SenderSecrets(TOKEN, SECRET, SECRET, SECRET)
BEARER = {"Authorization": f"Bearer {TOKEN}"}
DAY = Interval(datetime(2026, 4, 7, tzinfo=UTC), datetime(2026, 4, 8, tzinfo=UTC))

Client = TestClient[web.Request, web.Application]


def served(events: EventStore) -> TestClient[web.Request, web.Application]:
    app = web.Application()
    app.router.add_routes(webhook_routes(events, SetClock(NOW), SECRETS))
    return TestClient(TestServer(app))


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with served(MemoryEvents()) as client:
        yield client


async def post(
    client: Client, path: str, body: object, headers: dict[str, str] = BEARER
) -> tuple[int, dict[str, object]]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    async with client.post(path, data=data, headers=headers) as response:
        return response.status, await response.json()


def signed(body: bytes, secret: str = SECRET, event: str = "deployment_status") -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Event": event}


def github(state: str = "success", number: int = 7) -> bytes:
    return orjson.dumps(
        {
            "action": "created",
            "deployment_status": {"state": state, "created_at": "2026-04-07T14:32:00Z"},
            "deployment": {
                "id": number,
                "sha": "9f2ab17" + "0" * 33,
                "ref": "v2.4.0",
                "environment": "production",
                "creator": {"login": "jonas"},
                "created_at": "2026-04-07T14:30:00Z",
            },
            "repository": {"name": "checkout", "full_name": "shop/checkout"},
        }
    )


def argo(**status: object) -> dict[str, object]:
    history = [
        {
            "id": number,
            "revision": f"{number}" * 40,
            "deployStartedAt": f"2026-04-07T1{number}:00:00Z",
            "deployedAt": f"2026-04-07T1{number}:00:30Z",
            "initiatedBy": {"automated": True},
            "source": {},
        }
        for number in (1, 2)
    ]
    return {
        "metadata": {"name": "checkout", "namespace": "argocd"},
        "status": {"history": history, **status},
    }


def alert(status: str = "firing", **fields: object) -> dict[str, object]:
    return {
        "status": status,
        "labels": {"alertname": "PoolExhausted", "service": "payments-db", "severity": "critical"},
        "annotations": {"summary": "Connection pool exhausted"},
        "startsAt": "2026-04-07T14:00:00Z",
        "endsAt": "0001-01-01T00:00:00Z" if status == "firing" else "2026-04-07T14:50:00Z",
        "fingerprint": "f00d",
        **fields,
    }


def group(*alerts: dict[str, object]) -> dict[str, object]:
    return {
        "version": "4",
        "groupKey": '{}:{alertname="PoolExhausted"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "kortex",
        "commonLabels": {},
        "alerts": list(alerts),
    }


async def test_a_signed_deployment_is_a_deploy(database: Database) -> None:
    async with served(StoredEvents(database)) as client:
        for _ in range(2):
            await post(client, GITHUB_PATH, github(), signed(github()))
    assert list(await StoredDeploys(database).between("checkout", DAY)) == [
        Deploy(
            "checkout", "v2.4.0", datetime(2026, 4, 7, 14, 32, tzinfo=UTC), "jonas", "",
            "9f2ab17" + "0" * 33, "ok", "", 120.0,
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "added"), [("success", 1), ("failure", 1), ("error", 1), ("in_progress", 0)]
)
async def test_a_deployment_counts_when_it_has_ended(
    client: Client, state: str, added: int
) -> None:
    body = github(state)
    assert await post(client, GITHUB_PATH, body, signed(body)) == (
        200,
        {"added": added, "known": 0},
    )


async def test_a_redelivery_is_known(client: Client) -> None:
    body = github()
    await post(client, GITHUB_PATH, body, signed(body))
    assert await post(client, GITHUB_PATH, body, signed(body)) == (200, {"added": 0, "known": 1})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        BEARER,
        signed(github(), "another"),
        signed(github() + b" "),
        {"X-Hub-Signature-256": "sha256="},
        {"X-Hub-Signature-256": "sha1=ab"},
    ],
)
async def test_a_wrong_signature_is_refused(client: Client, headers: dict[str, str]) -> None:
    status, _ = await post(client, GITHUB_PATH, github(), headers)
    assert status == 401


async def test_another_github_event_is_accepted_and_ignored(client: Client) -> None:
    body = b'{"zen": "Speak like a human."}'
    assert await post(client, GITHUB_PATH, body, signed(body, event="ping")) == (
        200,
        {"added": 0, "known": 0},
    )


def of_gitlab(event: str = "Deployment Hook", token: str = SECRET) -> dict[str, str]:
    return {"X-Gitlab-Token": token, "X-Gitlab-Event": event}


def of_flux(body: bytes, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Signature": f"sha256={digest}"}


def every_proof(body: bytes) -> dict[str, str]:
    """Headers that each sender's path believes."""
    return BEARER | signed(body) | of_gitlab() | of_flux(body)


def with_fields(value: object, changes: dict[str, object]) -> object:
    """The same with each named field changed, however deep."""
    if isinstance(value, dict):
        return {
            k: changes[k] if k in changes else with_fields(v, changes) for k, v in value.items()
        }
    return [with_fields(each, changes) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("status", "added"), [("success", 1), ("failed", 1), ("running", 0), ("canceled", 0)]
)
async def test_a_deployment_of_gitlab_counts_when_it_has_ended(
    client: Client, status: str, added: int
) -> None:
    body = {**GITLAB_WEBHOOK, "status": status}
    answer = await post(client, GITLAB_PATH, body, of_gitlab())
    assert answer == (200, {"added": added, "known": 0})


async def test_another_gitlab_event_is_accepted_and_ignored(client: Client) -> None:
    answer = await post(client, GITLAB_PATH, {"object_kind": "push"}, of_gitlab("Push Hook"))
    assert answer == (200, {"added": 0, "known": 0})


@pytest.mark.parametrize("headers", [{}, BEARER, of_gitlab(token="another"), of_gitlab(token="")])
async def test_gitlab_without_its_token_is_refused(client: Client, headers: dict[str, str]) -> None:
    status, _ = await post(client, GITLAB_PATH, GITLAB_WEBHOOK, headers)
    assert status == 401


@pytest.mark.parametrize(
    ("change", "added"),
    [
        ({}, 1),
        ({"reason": "HealthCheckFailed", "severity": "error"}, 1),
        ({"reason": "DependencyNotReady", "severity": "error"}, 0),
        ({"reason": "Progressing"}, 0),
        ({"involvedObject": {"kind": "GitRepository", "name": "shop"}}, 0),
    ],
)
async def test_a_finished_flux_reconciliation_is_a_deploy(
    client: Client, change: dict[str, object], added: int
) -> None:
    body = orjson.dumps({**FLUX_WEBHOOK, **change})
    answer = await post(client, FLUX_PATH, body, of_flux(body))
    assert answer == (200, {"added": added, "known": 0})


async def test_drift_corrected_by_flux_is_not_a_deploy(client: Client) -> None:
    again = {**FLUX_WEBHOOK, "timestamp": "2026-04-07T18:32:03Z"}
    for body, added in ((orjson.dumps(FLUX_WEBHOOK), 1), (orjson.dumps(again), 0)):
        _, answer = await post(client, FLUX_PATH, body, of_flux(body))
        assert answer["added"] == added


@pytest.mark.parametrize(
    "headers", [{}, BEARER, of_flux(b"another"), of_flux(orjson.dumps(FLUX_WEBHOOK), "another")]
)
async def test_flux_without_its_signature_is_refused(
    client: Client, headers: dict[str, str]
) -> None:
    status, _ = await post(client, FLUX_PATH, orjson.dumps(FLUX_WEBHOOK), headers)
    assert status == 401


@pytest.mark.parametrize("wrap", [lambda app: app, lambda app: {"app": app}])
async def test_every_known_sync_is_one_deploy(database: Database, wrap: object) -> None:
    async with served(StoredEvents(database)) as client:
        body = wrap(argo())  # type: ignore[operator]
        assert await post(client, ARGOCD_PATH, body) == (200, {"added": 2, "known": 0})
        assert await post(client, ARGOCD_PATH, body) == (200, {"added": 0, "known": 2})
    newest, _ = await StoredDeploys(database).between("checkout", DAY)
    assert (newest.version, newest.commit, newest.actor, newest.duration_s) == (
        "2" * 12,
        "2" * 40,
        "argocd",
        30.0,
    )


async def test_a_failed_sync_is_a_failed_deploy(database: Database) -> None:
    operation = {
        "phase": "Failed",
        "message": "one or more objects failed to apply",
        "startedAt": "2026-04-07T14:00:00Z",
        "finishedAt": "2026-04-07T14:01:00Z",
        "syncResult": {"revision": "v3"},
    }
    async with served(StoredEvents(database)) as client:
        await post(client, ARGOCD_PATH, argo(operationState=operation))
    newest, *_ = await StoredDeploys(database).between("checkout", DAY)
    assert (newest.status, newest.version) == ("failed", "v3")


async def test_a_repeated_alert_is_one_incident(database: Database) -> None:
    async with served(StoredEvents(database)) as client:
        for body in (group(alert()), group(alert()), group(alert(), alert("resolved"))):
            status, _ = await post(client, ALERTMANAGER_PATH, body)
            assert status == 200
    (found,) = await StoredIncidents(database).search(IncidentQuery("pool exhausted", "C1"))
    assert (found.title, found.product, found.severity, found.opened_at, found.closed_at) == (
        "Connection pool exhausted",
        "payments-db",
        "critical",
        datetime(2026, 4, 7, 14, 0, tzinfo=UTC),
        datetime(2026, 4, 7, 14, 50, tzinfo=UTC),
    )


async def test_an_equal_alert_at_another_time_is_another_incident(database: Database) -> None:
    again = alert(startsAt="2026-04-07T14:55:00Z")
    async with served(StoredEvents(database)) as client:
        await post(client, ALERTMANAGER_PATH, group(alert(), again))
    found = await StoredIncidents(database).search(IncidentQuery("pool", "C1"))
    assert len(found) == 2


SYNC = {"id": 1, "revision": "v3", "deployStartedAt": None, "deployedAt": None}
FAILED = {"phase": "Failed", "startedAt": None, "finishedAt": None}
# By sender: its path, a body with one event, and the fields that state the time of it.
LONE: dict[str, tuple[str, object, tuple[str, ...]]] = {
    "alert": (ALERTMANAGER_PATH, group(alert()), ("startsAt", "endsAt")),
    "resolved alert": (ALERTMANAGER_PATH, group(alert("resolved")), ("startsAt", "endsAt")),
    "github": (GITHUB_PATH, orjson.loads(github()), ("created_at",)),
    "gitlab": (GITLAB_PATH, GITLAB_WEBHOOK, ("status_changed_at",)),
    "flux": (FLUX_PATH, FLUX_WEBHOOK, ("timestamp",)),
    "argo sync": (ARGOCD_PATH, argo(history=[SYNC]), ("deployStartedAt", "deployedAt")),
    "failed argo sync": (
        ARGOCD_PATH, argo(history=[], operationState=FAILED), ("startedAt", "finishedAt"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", NO_INSTANTS, ids=repr)
@pytest.mark.parametrize("name", LONE)
async def test_a_single_event_without_a_readable_time_has_the_time_of_receipt(
    name: str, odd: object
) -> None:
    path, said, fields = LONE[name]
    body = json.dumps(with_fields(said, dict.fromkeys(fields, odd))).encode()
    store = MemoryEvents()
    async with served(store) as client:
        for added in (1, 0):
            status, answer = await post(client, path, body, every_proof(body))
            assert (status, answer["added"]) == (200, added)
    assert [event.at for event in store.rows.values()] == [NOW]


@pytest.mark.parametrize(("odd", "text"), LABEL_TEXTS, ids=repr)
async def test_a_label_of_a_single_alert_is_text(odd: object, text: str | None) -> None:
    labels = {"alertname": "PoolExhausted", "service": "payments-db", "k8s.pod.name": odd}
    store = MemoryEvents()
    async with served(store) as client:
        body = json.dumps(group(alert(labels=labels))).encode()
        assert await post(client, ALERTMANAGER_PATH, body) == (200, {"added": 1, "known": 0})
    (event,) = store.rows.values()
    kept = event.data["labels"]
    assert isinstance(kept, dict)
    assert (event.product, kept.get("k8s.pod.name")) == ("payments-db", text)


@pytest.mark.parametrize("path", [ALERTMANAGER_PATH, ARGOCD_PATH])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
async def test_without_the_token_nothing_is_accepted(
    client: Client, path: str, headers: dict[str, str]
) -> None:
    status, _ = await post(client, path, group(alert()), headers)
    assert status == 401


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"version":"3","alerts":[]}', b'{"app":5}', b"[" * 100_000, b"\xff"],
)
@pytest.mark.parametrize(
    "path", [ALERTMANAGER_PATH, ARGOCD_PATH, FLUX_PATH, GITHUB_PATH, GITLAB_PATH]
)
async def test_a_foreign_body_is_refused_with_the_place(
    client: Client, path: str, body: bytes
) -> None:
    status, answer = await post(client, path, body, every_proof(body))
    assert status == 400
    assert answer["error"]


async def test_a_failed_write_asks_the_sender_to_retry() -> None:
    class Outage:
        async def add(self, found: Sequence[IngestedEvent]) -> int:
            raise StorageUnavailable("gone")

    async with served(Outage()) as client:
        status, _ = await post(client, ALERTMANAGER_PATH, group(alert()))
    assert status == 503


@pytest.mark.parametrize(
    ("path", "setting"),
    [
        (ALERTMANAGER_PATH, "api_token"), (ARGOCD_PATH, "api_token"), (FLUX_PATH, "flux_secret"),
        (GITHUB_PATH, "github_secret"), (GITLAB_PATH, "gitlab_token"),
        ("/alerts/v1/alertmanager", "alertmanager_token"), ("/alerts/v1/grafana", "grafana_token"),
        ("/alerts/v1/pagerduty", "pagerduty_secret"), ("/alerts/v1/cloudevents", "cloudevents_token"),
    ],
)  # fmt: skip
async def test_a_path_without_its_secret_is_503_and_names_the_setting(
    path: str, setting: str
) -> None:
    app, events, clock = web.Application(), MemoryEvents(), SetClock(NOW)

    async def take(_alerts: Sequence[Alert]) -> IntakeCounts:
        raise AssertionError

    app.router.add_routes(webhook_routes(events, clock, SenderSecrets()))
    app.router.add_routes(alert_routes((), take, clock))
    async with TestClient(TestServer(app)) as client:
        status, answer = await post(client, path, {"any": "body"})
    words = f"set [http] {setting} and restart Kortex"
    assert (status, answer) == (503, {"error": {"code": "disabled", "message": words}})
    assert not events.rows
