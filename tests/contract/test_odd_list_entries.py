"""One odd entry of a list from Kubernetes, a deploy system or the platform loses no other, and is logged."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.deploys.argocd import ArgoDeploys
from adapters.deploys.flux import FluxDeploys
from adapters.deploys.github import GitHubDeploys
from adapters.deploys.gitlab import GitLabDeploys
from adapters.errors import AdapterError
from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.kubernetes.offer import KubernetesOffer
from adapters.kubernetes.reader import KubernetesReader
from adapters.kubernetes.rollouts import KubernetesRollouts
from adapters.platform.http_platform import HttpPlatform
from tests.fakes.capabilities import call_context
from tests.fixtures_http import Handler, serving
from tests.odd_json import ODD
from tools.capabilities import Interval
from tools.cluster_objects import ObjectQuery
from tools.errors import ToolError
from tools.outside_json import counting_unread

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
DAY = Interval(NOW - timedelta(days=1), NOW)
CALL = call_context(connection_ids=frozenset({"platform:alice"}))
OWNED = '"ownerReferences": [{"uid": "u1"}]'
AT, UNSET = "2026-11-21T13:00:00Z", "0001-01-01T00:00:00Z"
Read = Callable[[str], Awaitable[Sequence[str]]]


def from_cluster(read: Callable[[KubernetesApi], Awaitable[Sequence[str]]]) -> Read:
    async def read_from(url: str) -> Sequence[str]:
        async with aclosing(KubernetesApi(Access(url, None, lambda: "token", "shop"))) as api:
            return await read(api)

    return read_from


async def rollouts(api: KubernetesApi) -> Sequence[str]:
    found = await KubernetesRollouts(api, (), ()).between("checkout", DAY)
    return [deploy.version for deploy in found]


async def events(api: KubernetesApi) -> Sequence[str]:
    return [one.reason for one in await KubernetesReader(api).events(ObjectQuery(""))]


async def table(api: KubernetesApi) -> Sequence[str]:
    found = await KubernetesReader(api).table(ObjectQuery("pods"))
    return [row[0] for row in found.rows]


async def kinds(api: KubernetesApi) -> Sequence[str]:
    return sorted({one.kind for one in await KubernetesOffer(api).kinds()})


async def flux(api: KubernetesApi) -> Sequence[str]:
    return [one.product for one in await FluxDeploys(api).since(DAY.start)]


def asking(
    make: Callable[[httpx.AsyncClient], ArgoDeploys | GitHubDeploys | GitLabDeploys],
) -> Read:
    async def read(url: str) -> Sequence[str]:
        async with httpx.AsyncClient(base_url=url) as client:
            return [one.product for one in await make(client).since(DAY.start)]

    return read


async def workflows(url: str) -> Sequence[str]:
    async with httpx.AsyncClient(base_url=url) as client:
        found = await HttpPlatform(client, lambda _id: "token").workflows("", "", CALL)
        return [one.id for one in found]


DISCOVERED = (
    '{"metadata": {"name": "apps", "labels": null}, "versions": [null, {"version": "v1", "resources": '
    '[{"resource": "deployments", "responseKind": {"kind": "Deployment"}, "verbs": ["create"], '
    '"shortNames": null}, null]}]}'
)
# Per family: how it is read, the answers by the end of their path, ENTRIES among them, a sound entry
# with a null in every field that may be absent, what is read of it, and entries that are odd in one field.
Family = tuple[Read, Mapping[str, str], str, Sequence[str], Sequence[str]]
FAMILIES: Mapping[str, Family] = {
    "rollouts": (
        from_cluster(rollouts),
        {
            "/deployments": '{"items": [{"metadata": {"name": "checkout", "uid": "u1", "labels": null, '
            '"annotations": null, "ownerReferences": null}, "spec": null, "status": {"conditions": null}}]}',
            "/replicasets": '{"items": [ENTRIES]}',
        },
        '{"metadata": {"name": "checkout-1", "labels": {"app.kubernetes.io/name": null}, '
        f'"annotations": null, "creationTimestamp": "{AT}", {OWNED}}}, '
        '"spec": {"template": {"spec": {"containers": [{"image": "shop/checkout:v2"}]}}}, "status": null}',
        ["v2"],
        ['{"metadata": {"creationTimestamp": "yesterday"}}', '{"metadata": {"labels": [7]}}'],
    ),
    "events": (
        from_cluster(events),
        {"/events": '{"items": [ENTRIES], "metadata": null}'},
        f'{{"reason": "Killing", "lastTimestamp": "{AT}", "eventTime": null, "series": null, "count": null, '
        '"message": null, "involvedObject": null, "type": null, "metadata": null}',
        ["Killing"],
        ['{"lastTimestamp": "yesterday"}', '{"count": "many"}', '{"involvedObject": 7}'],
    ),
    "table": (
        from_cluster(table),
        {"/pods": '{"columnDefinitions": [{"name": "Name", "priority": null}, null], "rows": [ENTRIES]}'},
        '{"cells": ["checkout-1", null], "object": null}',
        ["checkout-1"],
        ['{"cells": 7}', '{"object": "x"}'],
    ),
    "discovery": (
        from_cluster(kinds),
        {"": '{"kind": "APIGroupDiscoveryList", "items": [ENTRIES]}'},
        DISCOVERED,
        ["Deployment"],
        ['{"versions": [null]}', '{"metadata": {"name": 7}}'],
    ),
    "flux": (
        from_cluster(flux),
        {"/kustomizations": '{"items": [ENTRIES]}', "/helmreleases": '{"items": null}'},
        '{"metadata": {"name": "checkout", "namespace": null}, "status": {"history": null, '
        f'"lastAppliedRevision": "main@sha1:abc", "lastAttemptedRevision": null, "conditions": [null, '
        f'{{"type": "Ready", "status": "True", "reason": null, "lastTransitionTime": "{AT}"}}]}}}}',
        ["checkout"],
        ['{"metadata": {"name": null}}', '{"metadata": {"name": "x"}, "status": {"conditions": [7]}}',
         f'{{"metadata": {{"name": "x"}}, "status": {{"conditions": [{{"type": "Ready", "lastTransitionTime": "{UNSET}"}}]}}}}'],
    ),
    "argocd": (
        asking(lambda client: ArgoDeploys(client, ())),
        {"/applications": '{"items": [ENTRIES]}'},
        '{"metadata": {"name": "checkout", "namespace": null}, "status": {"operationState": null, '
        f'"summary": null, "history": [null, {{"id": 1, "deployedAt": "{AT}", "revisions": null}}]}}}}',
        ["checkout"],
        ['{"metadata": {"name": ""}}', '{"metadata": {"name": "x"}, "status": {"history": [{}]}}'],
    ),
    "github": (
        asking(lambda client: GitHubDeploys(client, "shop/checkout")),
        {
            "/deployments": "[ENTRIES]",
            "/statuses": f'[null, {{"state": "success", "created_at": "{AT}", "description": null}}]',
        },
        f'{{"id": 1, "sha": null, "ref": null, "creator": null, "environment": null, "created_at": "{AT}", '
        '"updated_at": null}',
        ["checkout"],
        [f'{{"id": 18446744073709551616, "created_at": "{AT}"}}', '{"id": 2, "created_at": null}',
         f'{{"id": 3, "created_at": "{UNSET}"}}'],
    ),
    "gitlab": (
        asking(lambda client: GitLabDeploys(client, "37")),
        {"/deployments": "[ENTRIES]", "/37": '{"path_with_namespace": "shop/checkout"}'},
        f'{{"id": 1, "status": "success", "sha": null, "created_at": "{AT}", "updated_at": "{AT}", '
        '"user": null, "environment": null}',
        ["checkout"],
        ['{"id": 2, "status": null}', '{"id": -1, "status": "success"}',
         f'{{"id": 3, "status": "success", "created_at": "{AT}", "updated_at": "{UNSET}"}}'],
    ),
    "platform": (
        workflows,
        {"/workflows": '{"workflows": [ENTRIES]}'},
        '{"id": "w1", "name": null, "app_name": null, "status": null, "steps": [null, {"name": "build"}]}',
        ["w1"],
        ['{"id": {}}', '{"id": "w2", "steps": 7}'],
    ),
}  # fmt: skip
# An object without any field is a sound row, event and group to Kubernetes, which may leave all of them out.
LENIENT = frozenset({"events", "table", "discovery"})
EMPTY = ("{}", '{"a.b/c d": null}')


def odd_entries(name: str) -> Sequence[str]:
    """Those that the family can not read as an entry without any field."""
    return [odd for odd in (*ODD, *FAMILIES[name][4]) if not (name in LENIENT and odd in EMPTY)]


def answering(answers: Mapping[str, str]) -> Handler:
    """A server of these answers, by the end of the path."""

    async def answer(request: web.Request) -> web.StreamResponse:
        ends = [end for end in answers if request.path.rstrip("/").endswith(end)]
        if not ends:
            return web.json_response({"message": "not found"}, status=404)
        return web.Response(text=answers[max(ends, key=len)], content_type="application/json")

    return answer


def bodies(answers: Mapping[str, str], entries: Sequence[str]) -> Mapping[str, str]:
    return {end: body.replace("ENTRIES", ", ".join(entries)) for end, body in answers.items()}


@pytest.mark.parametrize("name", FAMILIES)
async def test_valid_entry_is_read_and_each_odd_one_logged(name: str) -> None:
    read, answers, sound, expected, _odd = FAMILIES[name]
    odd = odd_entries(name)
    async with serving(answering(bodies(answers, [*odd, sound, *odd]))) as url:
        with capture_logs() as logged, counting_unread() as unread:
            assert await read(url) == expected
    assert sum(one["count"] for one in logged if "unreadable" in one["event"]) >= 2 * len(odd)
    assert unread.count >= 2 * len(odd)


async def test_an_undated_github_change_has_the_deployments_time() -> None:
    read, answers, sound, expected, _odd = FAMILIES["github"]
    undated = sound.replace('"updated_at": null', f'"updated_at": "{UNSET}"')
    async with serving(answering(bodies(answers, [undated]))) as url:
        assert await read(url) == expected


async def test_an_odd_column_does_not_shift_the_cells_of_others() -> None:
    body = (
        '{"columnDefinitions": [7, {"name": "Name"}, {"priority": 0}, {"name": "Status"}], '
        '"rows": [{"cells": ["?", "checkout-1", "?", "Failed"]}]}'
    )
    async with (
        serving(answering({"/pods": body})) as url,
        aclosing(KubernetesApi(Access(url, None, lambda: "token", "shop"))) as api,
    ):
        found = await KubernetesReader(api).table(ObjectQuery("pods"))
    assert (found.columns, found.rows) == (["Name", "Status"], [["checkout-1", "Failed"]])
    assert found.unread == 2


@pytest.mark.parametrize("name", FAMILIES)
async def test_list_without_any_readable_entry_is_an_error(name: str) -> None:
    read, answers, _sound, _expected, _odd = FAMILIES[name]
    async with serving(answering(bodies(answers, ["7", "null"]))) as url:
        with pytest.raises((ToolError, AdapterError)):
            await read(url)


@pytest.mark.parametrize("name", FAMILIES)
async def test_null_instead_of_a_list_is_an_empty_list(name: str) -> None:
    read, answers, _sound, _expected, _odd = FAMILIES[name]
    empty = {end: body.replace("[ENTRIES]", "null") for end, body in answers.items()}
    async with serving(answering(empty)) as url:
        assert await read(url) == []


@pytest.mark.parametrize("odd", ["7", "null", '"x"', "[]", "true"])
async def test_odd_object_of_a_cluster_is_counted_and_the_valid_one_shown(odd: str) -> None:
    sound = '{"metadata": {"name": "web-1", "labels": null}, "status": null}'
    async with (
        serving(answering({"/pods": f'{{"items": [{odd}, {sound}, {odd}]}}'})) as url,
        aclosing(KubernetesApi(Access(url, None, lambda: "token", "shop"))) as api,
    ):
        found = await KubernetesReader(api).objects(ObjectQuery("pods"))

    assert [one["kind"] for one in found.objects] == ["Pod"]
    assert found.unread == 2
