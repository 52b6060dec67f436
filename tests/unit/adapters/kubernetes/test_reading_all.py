"""Lists are read to their end, the newest events are the newest, and rights are asked where they count."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.kubernetes import reader
from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.kubernetes.kinds import KINDS, is_secret, kind_of
from adapters.kubernetes.reader import MAX_EVENTS, MAX_ROWS, KubernetesReader
from tests.fakes.kubernetes_server import TOKEN, KubernetesServer
from tools.cluster_objects import ObjectQuery
from tools.cluster_offer import OfferedKind, ResourceSchema
from tools.errors import InvalidArguments, UpstreamFailed

SOURCES = Path(__file__).parents[4] / "docs" / "sources.md"
ROLLOUT = OfferedKind("Rollout", "argoproj.io/v1alpha1", "rollouts", True, ("ro",))
SEALED = OfferedKind("SealedSecret", "bitnami.com/v1alpha1", "sealedsecrets", True)
CLIMBING = OfferedKind("Odd", "argoproj.io/v1", "../../api/v1/secrets", True)

Open = Callable[..., Awaitable[KubernetesApi]]


class Offer:
    """`tools.cluster_offer.ClusterOffer` of three custom kinds."""

    async def kinds(self) -> list[OfferedKind]:
        return [ROLLOUT, SEALED, CLIMBING]

    async def schema(self, kind: str, api_version: str, below: str) -> ResourceSchema:
        raise InvalidArguments("not asked for")


@pytest.fixture
async def open_api(
    aiohttp_server: Callable[[web.Application], Awaitable[TestServer]],
) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def opened(server: KubernetesServer) -> KubernetesApi:
            running = await aiohttp_server(server.app())
            access = Access(str(running.make_url("/")), None, lambda: TOKEN, "shop")
            api = KubernetesApi(access)
            stack.push_async_callback(api.aclose)
            return api

        yield opened


def events(number: int) -> list[dict[str, Any]]:
    """In the server's order, which is by name: the newest one is in the middle."""
    return [
        {
            "involvedObject": {"kind": "Pod", "name": f"web-{each}"},
            "type": "Warning",
            "lastTimestamp": f"2026-11-21T{(each * 7) % 24:02}:{each % 60:02}:00Z",
        }
        for each in range(number)
    ]


def pods(number: int) -> dict[str, dict[str, Any]]:
    return {
        f"/api/v1/namespaces/shop/pods/web-{each:05}": {
            "metadata": {"name": f"web-{each:05}", "namespace": "shop"},
            "status": {"phase": "Running"},
        }
        for each in range(number)
    }


@pytest.mark.parametrize("number", [0, 1, reader.PAGE, reader.PAGE + 1, 3 * reader.PAGE + 7])
async def test_the_newest_events_come_first_across_all_pages(open_api: Open, number: int) -> None:
    happened = events(number)
    cluster = KubernetesReader(await open_api(KubernetesServer({}, happened)))

    found = await cluster.events(ObjectQuery(""))

    newest = sorted((each["lastTimestamp"] for each in happened), reverse=True)[:MAX_EVENTS]
    assert [f"{one.at:%Y-%m-%dT%H:%M:%SZ}" for one in found if one.at] == newest


async def test_too_many_events_are_an_error(
    open_api: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_EVENT_PAGES", 2)
    api = await open_api(KubernetesServer({}, events(2 * reader.PAGE + 1)))

    with pytest.raises(UpstreamFailed, match="ask for one object's"):
        await KubernetesReader(api).events(ObjectQuery(""))


@pytest.mark.parametrize(("number", "more"), [(501, False), (MAX_ROWS, False), (1600, True)])
async def test_a_list_is_read_past_its_first_page(open_api: Open, number: int, more: bool) -> None:
    api = await open_api(KubernetesServer(pods(number)))

    found = await KubernetesReader(api).table(ObjectQuery("pods"))

    assert (len(found.rows), found.more) == (min(number, MAX_ROWS), more)
    assert len({row[0] for row in found.rows}) == len(found.rows)


@pytest.mark.parametrize("asked", ["Rollout", "rollouts", "ro", "rollouts.argoproj.io"])
async def test_a_custom_kind_is_read_under_every_name(open_api: Open, asked: str) -> None:
    path = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/checkout"
    server = KubernetesServer({path: {"kind": "Rollout", "metadata": {"name": "checkout"}}})
    cluster = KubernetesReader(await open_api(server), (), Offer())

    assert (await cluster.describe(ObjectQuery(asked, "shop", "checkout")))["kind"] == "Rollout"
    assert (await cluster.table(ObjectQuery(asked))).rows[0][0] == "checkout"


@pytest.mark.parametrize(
    "asked", ["sealedsecrets", "SealedSecret", "ExternalSecret", "tokenreviews", "odd", "Odd"]
)
async def test_no_custom_kind_gives_access_to_secrets(open_api: Open, asked: str) -> None:
    server = KubernetesServer({})
    cluster = KubernetesReader(await open_api(server), (), Offer())

    for question in (cluster.table, cluster.describe):
        with pytest.raises(InvalidArguments, match="kind"):
            await question(ObjectQuery(asked, "shop", "x"))
    assert server.requests == []


@pytest.mark.parametrize(("number", "more"), [(0, False), (251, False), (1600, True)])
async def test_complete_objects_are_read_page_by_page_up_to_a_limit(
    open_api: Open, number: int, more: bool
) -> None:
    server = KubernetesServer(pods(number))

    found = await KubernetesReader(await open_api(server)).objects(ObjectQuery("pods", "*"))

    assert (len(found.objects), found.more) == (min(number, MAX_ROWS), more)
    assert {request[0] for request in server.requests} == {"GET"}
    assert len(server.requests) <= MAX_ROWS // reader.OBJECTS_PAGE + 1


async def test_a_list_of_a_forbidden_namespace_is_refused(open_api: Open) -> None:
    cluster = KubernetesReader(await open_api(KubernetesServer(pods(1))), ("web",))

    with pytest.raises(InvalidArguments, match="readable are web"):
        await cluster.objects(ObjectQuery("pods", "shop"))


@pytest.mark.parametrize(
    ("allowed", "namespaces", "found"),
    [
        ([("list", "pods"), ("list", "nodes")], (), []),
        ([("list", "pods")], (), ["nodes"]),
        ([("list", "pods", "web"), ("list", "nodes")], ("web",), []),
        ([("list", "pods", "web"), ("list", "nodes")], ("web", "shop"), ["pods"]),
    ],
)
async def test_forbidden_kinds_are_named(
    open_api: Open, allowed: list[tuple[str, ...]], namespaces: tuple[str, ...], found: list[str]
) -> None:
    api = await open_api(KubernetesServer({}, allowed=allowed))

    assert await api.unlisted([kind_of("pods"), kind_of("nodes")], namespaces) == found


def test_a_custom_kind_does_not_replace_a_builtin_one() -> None:
    theirs = OfferedKind("Pod", "evil.example/v1", "pods", True)
    assert kind_of("pods", [theirs]).group == "api/v1"


@pytest.mark.parametrize(
    ("allowed", "namespaces", "found"),
    [
        ([("get", "secrets", "web")], (), []),
        ([("get", "secrets", "web")], ("web",), ["get secrets in web"]),
        ([("create", "pods/exec", "shop")], ("web",), ["create pods/exec in shop"]),
        ([("delete", "pods")], ("web", "shop"), ["delete pods"]),
    ],
)
async def test_permissions_are_checked_where_the_tools_read(
    open_api: Open, allowed: list[tuple[str, ...]], namespaces: tuple[str, ...], found: list[str]
) -> None:
    api = await open_api(KubernetesServer({}, allowed=allowed))
    assert await api.excess(namespaces) == found


def test_the_documented_role_contains_every_offered_kind() -> None:
    text = SOURCES.read_text(encoding="utf-8")
    (role,) = re.findall(r"```yaml\n(apiVersion: rbac.*?)```", text, re.DOTALL)
    rules = yaml.safe_load(role)["rules"]
    granted = {(group, kind) for r in rules for group in r["apiGroups"] for kind in r["resources"]}
    offered = {(re.sub(r"^apis?/|/?v\d$", "", kind.group), kind.plural) for kind in KINDS}

    assert offered <= granted
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert not any(is_secret(kind) or "*" in kind for _, kind in granted)
