"""Polled deploys: each system's answers, equal to its webhooks, and odd answers."""

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from adapters.deploys.argocd import ArgoDeploys, ArgoNotification
from adapters.deploys.feed import DeployFeed
from adapters.deploys.flux import FluxDeploys, FluxNotification
from adapters.deploys.github import DeploymentStatus, GitHubDeploys
from adapters.deploys.gitlab import DeploymentHook, GitLabDeploys
from adapters.errors import AdapterError, RateLimited
from adapters.http.client import http_client
from adapters.ingested_event import IngestedEvent
from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from bot.store.database import Database
from bot.store.ingested_events import StoredDeploys, StoredEvents
from bot.upkeep.deploy_feeds import FeedSweep
from tests.fakes import deploy_systems as told
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.set_clock import SetClock
from tests.fakes.tools import bench
from tests.fixtures_database import database, database_url
from tests.fixtures_http import serving
from tools.capabilities import Interval
from tools.core.get_recent_deploys import UNREAD, GetRecentDeploys
from tools.errors import ToolError

__all__ = ["database", "database_url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT = datetime(2026, 4, 7, 14, 32, tzinfo=UTC)
DAY = AT - timedelta(hours=24)
NOW = AT + timedelta(hours=1)
KUBERNETES = "/apis/{}.toolkit.fluxcd.io/{}/namespaces/shop/{}"
ANSWERS: Mapping[str, object] = {
    "/repos/shop/checkout/deployments": [told.GITHUB_DEPLOYMENT],
    "/repos/shop/checkout/deployments/145988746/statuses": told.GITHUB_STATUSES,
    "/api/v4/projects/37/deployments": [told.GITLAB_DEPLOYMENT],
    "/api/v4/projects/37": told.GITLAB_PROJECT,
    "/api/v1/applications": {"items": [told.ARGO_APPLICATION]},
    KUBERNETES.format("kustomize", "v1", "kustomizations"): {"items": [told.FLUX_KUSTOMIZATION]},
    KUBERNETES.format("helm", "v2", "helmreleases"): {"items": [told.FLUX_RELEASE]},
}
KINDS = ("github", "gitlab", "argocd", "flux")


class Systems:
    """All four on one server. `say` puts a body, and a status, in the place of every answer."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.said: tuple[int, bytes] | None = None
        self.headers: Mapping[str, str] = {}

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        if self.said is not None:
            status, body = self.said
            return web.Response(body=body, status=status, headers=self.headers)
        path = request.raw_path.split("?")[0]
        found = ANSWERS.get(path)
        status = 404 if found is None else 200
        return web.Response(body=json.dumps(found or {}).encode(), status=status)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[Systems]:
    systems = Systems()
    async with serving(systems.answer) as systems.url:
        yield systems


@pytest.fixture
def systems(running: Systems) -> Systems:
    running.asked.clear()
    running.said = None
    return running


@pytest_asyncio.fixture(loop_scope="module")
async def feeds(systems: Systems) -> AsyncIterator[Mapping[str, DeployFeed]]:
    client = http_client(base_url=systems.url)
    api = KubernetesApi(Access(systems.url, None, lambda: "", "shop"))
    yield {
        "github": GitHubDeploys(client, "shop/checkout"),
        "gitlab": GitLabDeploys(client, "37"),
        "argocd": ArgoDeploys(client, ["shop", "more"]),
        "flux": FluxDeploys(api),
    }
    await client.aclose()
    await api.aclose()


@pytest.mark.parametrize(
    ("kind", "product", "version", "actor", "status"),
    [
        ("github", "checkout", "v2.4.0", "jonas", "ok"),
        ("gitlab", "checkout", "main", "jonas", "ok"),
        ("argocd", "checkout", told.COMMIT[:12], "jonas", "ok"),
        ("flux", "checkout", f"main@sha1:{told.COMMIT}", "flux", "ok"),
        ("flux", "cart", "1.2.0", "flux", "failed"),
    ],
)
async def test_a_deploy_is_reported(
    feeds: Mapping[str, DeployFeed],
    kind: str,
    product: str,
    version: str,
    actor: str,
    status: str,
) -> None:
    found = {event.product: event for event in await feeds[kind].since(DAY)}

    event = found[product]
    assert event.source == kind
    assert abs(event.at - AT) < timedelta(seconds=1)
    assert {"version": version, "actor": actor, "status": status}.items() <= event.data.items()


@pytest.mark.parametrize("kind", ["github", "argocd", "flux"])
async def test_a_deploy_that_ended_earlier_is_omitted(
    feeds: Mapping[str, DeployFeed], kind: str
) -> None:
    assert not await feeds[kind].since(AT + timedelta(minutes=1))


async def test_gitlab_is_queried_from_the_start_time(
    feeds: Mapping[str, DeployFeed], systems: Systems
) -> None:
    await feeds["gitlab"].since(DAY)

    assert "updated_after=2026-04-06T14%3A32%3A00%2B00%3A00" in systems.asked[0]


async def test_argo_is_queried_for_the_named_projects(
    feeds: Mapping[str, DeployFeed], systems: Systems
) -> None:
    await feeds["argocd"].since(DAY)

    assert systems.asked == ["/api/v1/applications?projects=shop&projects=more"]


async def test_the_statuses_of_a_changed_deployment_are_fetched(
    feeds: Mapping[str, DeployFeed], systems: Systems
) -> None:
    told = [await feeds["github"].since(DAY) for _ in range(2)]

    assert len(told[0]) == 1
    assert told[0] == told[1]  # no one says here that it was stored the first time
    assert [path.partition("?")[0].rpartition("/")[2] for path in systems.asked] == [
        "deployments", "statuses", "deployments",
    ]  # fmt: skip


async def test_equal_revision_counts_of_two_argo_instances_are_two_deploys() -> None:
    later = json.loads(json.dumps(told.ARGO_APPLICATION).replace("T14:32:00Z", "T15:10:00Z"))
    apps = (told.ARGO_APPLICATION, later)

    ids = {e.id for app in apps for e in ArgoNotification(app=app).events(AT)}

    assert len(ids) == 2


@pytest.mark.parametrize(
    "unset", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z", None]
)
async def test_an_unset_time_is_not_the_year_1(unset: str | None) -> None:
    app: Any = json.loads(json.dumps(told.ARGO_APPLICATION))
    first = app["status"]["history"][0]
    app["status"]["history"] = [
        {**first, "deployStartedAt": unset},
        {**first, "id": 8, "deployedAt": unset},
        {**first, "id": 9, "deployedAt": unset, "deployStartedAt": unset},
    ]
    app["status"]["operationState"] = {"phase": "Failed", "startedAt": unset, "finishedAt": unset}
    flux = {**told.FLUX_WEBHOOK, "timestamp": unset}

    events = ArgoNotification.model_validate({"app": app}).events(NOW)
    again = FluxNotification.model_validate(flux).events(NOW)

    assert [event.at for event in events] == [AT, AT - timedelta(seconds=30), NOW]
    assert [event.data.get("duration_s") for event in events] == [None, 0.0, None]
    assert [event.at for event in again] == [NOW]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_invalid_revision_hides_no_other(
    feeds: Mapping[str, DeployFeed], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    text = json.dumps(ANSWERS)
    for each in (told.COMMIT, "1.2.0"):
        text = text.replace(each, "é" * 257)
    text = text.replace("v2.4.0", "x" * 10_000_000)
    lists = {path: _both(found, json.loads(text)[path]) for path, found in ANSWERS.items()}
    monkeypatch.setitem(globals(), "ANSWERS", lists)

    found = await feeds[kind].since(DAY)

    assert {e.product for e in found} <= {"checkout", "cart"}
    assert 0 < len(found) <= 2
    assert max(len(orjson.dumps(e.data)) for e in found) < 1000


def _both(good: Any, bad: Any) -> object:
    if isinstance(good, list):
        return [*bad, *good]
    return {**good, "items": [*bad["items"], *good["items"]]} if "items" in good else good


def by_webhook(read: Any, body: object) -> Callable[[], list[IngestedEvent]]:
    return lambda: list(read.model_validate_json(orjson.dumps(body)).events(AT))


@pytest.mark.parametrize(
    ("kind", "webhook"),
    [
        ("github", by_webhook(DeploymentStatus, told.GITHUB_WEBHOOK)),
        ("gitlab", by_webhook(DeploymentHook, told.GITLAB_WEBHOOK)),
        ("argocd", by_webhook(ArgoNotification, {"app": told.ARGO_APPLICATION})),
        ("flux", by_webhook(FluxNotification, told.FLUX_WEBHOOK)),
        ("flux", by_webhook(FluxNotification, told.FLUX_RELEASE_WEBHOOK)),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_deploy_from_a_webhook_and_a_poll_is_one_deploy(
    feeds: Mapping[str, DeployFeed],
    database: Database,
    kind: str,
    webhook: Callable[[], list[IngestedEvent]],
) -> None:
    events = StoredEvents(database)
    (pushed,) = webhook()
    assert await events.add([pushed])

    for event in await feeds[kind].since(DAY):
        await events.add([event])

    when = Interval(DAY, AT + timedelta(hours=1))
    assert len(await StoredDeploys(database).between(pushed.product, when)) == 1


HOSTILE = [
    b"",
    b"null",
    b'"deployments"',
    b"[" * 100_000,
    b"\xff\xfe",
    b'[{"id": 1e400}]',
    b'{"items": {"a": 1}}',
    b'{"items": "\\ud800"}',
    b"<html>sign in</html>",
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("kind", KINDS)
async def test_an_odd_answer_is_a_known_error_or_reports_nothing(
    feeds: Mapping[str, DeployFeed], systems: Systems, kind: str, body: bytes
) -> None:
    systems.said = (200, body)
    found: Sequence[IngestedEvent] = []
    with suppress(AdapterError, ToolError):
        found = await feeds[kind].since(DAY)

    assert found == []


@pytest.mark.parametrize("kind", ["github", "gitlab", "argocd"])
async def test_an_odd_entry_hides_no_other(
    feeds: Mapping[str, DeployFeed], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    odd: list[object] = [None, 7, {"id": "x"}, {"id": 10**60}, {"metadata": {"name": ""}}]
    known = {path: found for path, found in ANSWERS.items() if isinstance(found, list)}
    lists = {path: [*odd, *found] for path, found in known.items()}
    apps = {"/api/v1/applications": {"items": [*odd, told.ARGO_APPLICATION]}}
    monkeypatch.setitem(globals(), "ANSWERS", {**ANSWERS, **lists, **apps})

    (event,) = await feeds[kind].since(DAY)

    assert event.product == "checkout"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_list_of_deploys_says_which_feeds_failed(
    feeds: Mapping[str, DeployFeed],
    systems: Systems,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    odd: list[object] = [
        None,
        {"id": []},
        told.GITHUB_DEPLOYMENT,
        {"id": 2**64, "created_at": "0001-01-01"},
    ]
    path = "/repos/shop/checkout/deployments"
    monkeypatch.setitem(globals(), "ANSWERS", {**ANSWERS, path: odd})
    deploys, passed_s = StoredDeploys(database), [0.0]
    sweep = FeedSweep(
        "github",
        feeds["github"],
        StoredEvents(database),
        SetClock(NOW),
        60.0,
        deploys.feeds,
        lambda: passed_s[-1],
    )
    caps = fake_capabilities(deploys=deploys)
    answers = []
    for at_s, said in ((10.0, None), (100.0, (503, b"{}")), (900.0, None)):
        systems.said = said
        passed_s.append(at_s)
        await sweep.run()
        asked = '{"product": "checkout", "time_range": "last 2h"}'
        listing = bench([GetRecentDeploys()], caps=caps)
        outcome = await listing.run(asked, "core__get_recent_deploys", now=NOW)
        answers.append(orjson.loads(outcome.content))

    assert [each["total_matches"] for each in answers] == [1, 1, 1]
    assert [each["unread_entries"] for each in answers] == [3, 3, 3]
    notes = [each.get("notes") for each in answers]
    assert notes == [None, [f"{UNREAD}, because 1 source does not answer"], None]


async def test_a_rate_limit_reports_its_retry_after(
    feeds: Mapping[str, DeployFeed], systems: Systems
) -> None:
    systems.said, systems.headers = (429, b"{}"), {"Retry-After": "7"}

    with pytest.raises(RateLimited) as refused:
        await feeds["github"].since(DAY)

    assert refused.value.retry_after_s == 7.0


async def _limited(feeds: Mapping[str, DeployFeed], systems: Systems, reset: str) -> float | None:
    systems.said = (403, b"{}")
    systems.headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    with pytest.raises(RateLimited) as refused:
        await feeds["github"].since(DAY)
    return refused.value.retry_after_s


async def test_a_rate_limit_reported_as_forbidden_is_waited_for(
    feeds: Mapping[str, DeployFeed], systems: Systems
) -> None:
    waits_s = await _limited(feeds, systems, f"{time.time() + 900:.0f}")

    assert waits_s is not None
    assert 600.0 < waits_s < 901.0


@pytest.mark.parametrize(("reset", "waits_s"), [("1", 0.0), ("9" * 50, None), ("soon", None)])
async def test_the_end_of_a_rate_limit_may_be_past_or_invalid(
    feeds: Mapping[str, DeployFeed], systems: Systems, reset: str, waits_s: float | None
) -> None:
    assert await _limited(feeds, systems, reset) == waits_s


async def test_a_cluster_without_flux_reports_nothing(
    feeds: Mapping[str, DeployFeed], systems: Systems
) -> None:
    systems.said = (404, b'{"kind": "Status", "message": "not found"}')

    assert await feeds["flux"].since(DAY) == []
