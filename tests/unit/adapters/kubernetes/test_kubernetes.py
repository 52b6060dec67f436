"""How a cluster is reached, what its answers hide, what its identity may do, what was rolled out."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from adapters.kubernetes.api import FORBIDDEN, KubernetesApi
from adapters.kubernetes.config import Access, AccessInvalid, from_kubeconfig, in_cluster
from adapters.kubernetes.hiding import HIDDEN, shown, shown_text
from adapters.kubernetes.kinds import KINDS
from adapters.kubernetes.offer import KubernetesOffer
from adapters.kubernetes.reader import KubernetesReader
from adapters.kubernetes.rollouts import KubernetesRollouts
from bot.app.backend_kinds import Cluster, open_cluster
from bot.app.backend_selection import make_observed
from bot.app.start import warn_of_excess
from bot.settings.model import KubernetesSettings, Settings
from bot.settings.reading import ConfigurationError
from tests.fakes.capabilities import FakeClock, FakeDeploys, FakeHistory
from tests.fakes.kubernetes_server import TOKEN, KubernetesServer
from tests.fixtures_http import serving
from tools.capabilities import (
    Deploy,
    Interval,
)
from tools.cluster_objects import ObjectQuery, PodLogQuery
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
DAY = Interval(NOW - timedelta(days=1), NOW)

Open = Callable[..., Awaitable[KubernetesApi]]


@pytest.fixture
async def open_api(
    aiohttp_server: Callable[[web.Application], Awaitable[TestServer]],
) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def opened(server: KubernetesServer, token: str = TOKEN) -> KubernetesApi:
            running = await aiohttp_server(server.app())
            url = str(running.make_url("/"))
            api = KubernetesApi(Access(url, None, lambda: token, "shop"))
            stack.push_async_callback(api.aclose)
            return api

        yield opened


def test_values_that_may_be_secret_are_hidden() -> None:
    raw: dict[str, Any] = {
        "kind": "Deployment",
        "metadata": {
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": '{"password":"CANARY-1"}',
                "vendor.example/key": "CANARY-2",
                "deployment.kubernetes.io/revision": "7",
            },
            "managedFields": [{"CANARY-3": {}}],
        },
        "spec": {
            "template": {
                "metadata": {"annotations": {"inject": "CANARY-4"}},
                "spec": {
                    "initContainers": [{"env": [{"name": "PLAIN", "value": "CANARY-5"}]}],
                    "containers": [
                        {
                            "args": ["--password=CANARY-6", "--token", "CANARY-7", "--port", "80"],
                            "command": ["sh", "-c", "psql postgres://u:CANARY-8@db/x"],
                            "env": [
                                {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s"}}},
                            ],
                        }
                    ],
                },
            }
        },
    }
    text = orjson.dumps(shown(raw)).decode()
    assert "CANARY" not in text
    for kept in ('"PLAIN"', '"secretKeyRef"', '"7"', '"80"', "vendor.example/key", "postgres://"):
        assert kept in text


def test_a_config_map_shows_its_keys_and_sizes() -> None:
    found = shown({"kind": "ConfigMap", "data": {"app.conf": "password=CANARY"}})
    assert found["data"] == {"app.conf": f"{HIDDEN} 15 characters"}


def test_an_endlessly_nested_value_is_cut() -> None:
    deep: Any = "CANARY"
    for _ in range(200):
        deep = {"a": deep}
    assert HIDDEN in orjson.dumps(shown({"spec": deep})).decode()


@pytest.mark.parametrize(
    "text", ["pull from https://bot:CANARY@registry/x", "ran --api-key CANARY", "--auth=CANARY"]
)
def test_credentials_in_words_are_hidden(text: str) -> None:
    assert "CANARY" not in shown_text(text)


def test_no_kind_of_secrets_can_be_read() -> None:
    assert not {"secrets", "serviceaccounts", "tokenreviews"} & {kind.plural for kind in KINDS}


@pytest.mark.parametrize(
    ("token", "code", "words"), [("", 403, "system:anonymous"), ("wrong", 401, "Unauthorized")]
)
async def test_a_refusal_keeps_its_message(
    open_api: Open, token: str, code: int, words: str
) -> None:
    reader = KubernetesReader(await open_api(KubernetesServer({}), token))
    with pytest.raises(UpstreamFailed, match=words) as failure:
        await reader.table(ObjectQuery("pods"))
    assert failure.value.status == code


async def test_several_containers_are_listed_for_the_model(open_api: Open) -> None:
    server = KubernetesServer({}, logs={"web-1/app": ["a"], "web-1/proxy": ["b"]})
    reader = KubernetesReader(await open_api(server))
    with pytest.raises(InvalidArguments, match=r"choose one of: \[app proxy\]"):
        await reader.logs(PodLogQuery("shop", "web-1"))
    assert await reader.logs(PodLogQuery("shop", "web-1", "proxy")) == ["b"]


async def test_only_reads_are_sent_and_logs_never_follow(open_api: Open) -> None:
    server = KubernetesServer({}, logs={"web-1/app": ["a"]})
    reader = KubernetesReader(await open_api(server))
    await reader.table(ObjectQuery("pods"))
    await reader.logs(PodLogQuery("shop", "web-1", tail=100_000))
    assert {method for method, _, _ in server.requests} == {"GET"}
    query = server.requests[-1][2]
    assert (query["tailLines"], "follow" in query, "limitBytes" in query) == ("500", False, True)


async def test_only_the_named_namespaces_are_read(open_api: Open) -> None:
    server = KubernetesServer({})
    reader = KubernetesReader(await open_api(server), ["shop", "web"])
    for namespace in ("kube-system", "*"):
        with pytest.raises(InvalidArguments, match="shop, web"):
            await reader.table(ObjectQuery("pods", namespace))
    assert server.requests == []


@pytest.mark.parametrize(
    ("fields", "hour", "count"),
    [
        ({"series": {"count": 9, "lastObservedTime": "2026-11-21T13:00:00.5Z"}, "count": 2}, 13, 9),
        ({"lastTimestamp": "2026-11-21T12:00:00Z", "count": 4}, 12, 4),
        ({"eventTime": "2026-11-21T11:00:00.000001Z", "lastTimestamp": None}, 11, 1),
        ({"metadata": {"creationTimestamp": "2026-11-21T10:00:00Z"}}, 10, 1),
    ],
)
async def test_old_and_new_event_formats_have_time_and_count(
    open_api: Open, fields: dict[str, Any], hour: int, count: int
) -> None:
    event = {"involvedObject": {"kind": "Pod", "name": "web-1"}, "type": "Warning", **fields}
    reader = KubernetesReader(await open_api(KubernetesServer({}, [event])))
    (found,) = await reader.events(ObjectQuery(""))
    assert found.at is not None
    assert (found.at.hour, found.count) == (hour, count)


async def test_an_identity_that_may_write_gets_a_warning(open_api: Open) -> None:
    allowed = [("delete", "pods"), ("create", "pods/exec")]
    api = await open_api(KubernetesServer({}, allowed=allowed))
    with capture_logs() as logs:
        rollouts = KubernetesRollouts(api, [], [])
        await warn_of_excess(Cluster(api, KubernetesReader(api), rollouts, KubernetesOffer(api)))
    assert logs == [
        {
            "event": "kubernetes.identity_can_write",
            "log_level": "error",
            "may": ["delete pods", "create pods/exec"],
        }
    ]


@pytest.mark.parametrize("status", [0, 401, 503])
async def test_an_unreachable_cluster_is_reported_and_stops_no_start(status: int) -> None:
    async def refuse(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="<html>")

    async with serving(refuse) as there:
        address = there if status else "http://127.0.0.1:1"
        api = KubernetesApi(Access(address, None, lambda: TOKEN, "shop"))
        rollouts = KubernetesRollouts(api, [], [])
        with capture_logs() as logs:
            await warn_of_excess(
                Cluster(api, KubernetesReader(api), rollouts, KubernetesOffer(api))
            )
        await api.aclose()

    assert [line["event"] for line in logs] == ["kubernetes.permissions_unreadable"]


async def test_a_read_only_identity_gets_no_warning(open_api: Open) -> None:
    server = KubernetesServer({})
    api = await open_api(server)
    assert await api.excess() == []
    assert len(server.requests) == 2 * len(FORBIDDEN)  # everywhere, and in its own namespace


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "clusters": [
                    {"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **cluster}}
                ],
                "users": [{"name": "u", "user": user}],
                "contexts": [
                    {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}
                ],
            }
        )
    )
    return path


def test_a_kubeconfig_gives_server_token_and_namespace(tmp_path: Path) -> None:
    found = from_kubeconfig(kubeconfig(tmp_path, {"token": "abc"}))
    assert (found.server, found.token(), found.namespace) == (
        "https://10.0.0.1:6443",
        "abc",
        "shop",
    )


def test_a_token_file_is_read_again_each_time(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    found = from_kubeconfig(kubeconfig(tmp_path, {"tokenFile": "token"}))
    assert found.token() == "one"
    (tmp_path / "token").write_text("two\n")
    assert found.token() == "two"


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        ({"exec": {"command": "aws"}}, {}, "not a readable"),
        ({"auth-provider": {"name": "gcp"}}, {}, "only tokens"),
        ({"username": "admin", "password": "CANARY"}, {}, "only tokens"),
        ({"token": "CANARY"}, {"insecure-skip-tls-verify": True}, "not accepted"),
        ({"token": "CANARY"}, {"certificate-authority-data": "!!"}, "certificate"),
        ({"token": "CANARY"}, {"certificate-authority": "gone.crt"}, "certificate"),
        (
            {
                "client-certificate-data": base64.b64encode(b"CANARY").decode(),
                "client-key-data": "x",
            },
            {},
            "certificate",
        ),
        ({"token": ["CANARY"]}, {}, "not a readable kubeconfig"),
    ],
)
def test_an_unusable_kubeconfig_is_reported_without_its_secrets(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], words: str
) -> None:
    with pytest.raises(AccessInvalid, match=words) as error:
        from_kubeconfig(kubeconfig(tmp_path, user, **cluster))
    assert "CANARY" not in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "a: &a [*a]", "{", "clusters: 5"])
def test_a_file_that_is_not_a_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(AccessInvalid):
        from_kubeconfig(tmp_path / "config")


def test_outside_a_cluster_there_is_no_service_account(tmp_path: Path) -> None:
    with pytest.raises(AccessInvalid, match="not inside a cluster"):
        in_cluster(tmp_path)


async def test_an_unreachable_cluster_is_unavailable(unused_tcp_port: int) -> None:
    access = Access(f"http://127.0.0.1:{unused_tcp_port}", None, lambda: "", "shop")
    api = KubernetesApi(access)
    with pytest.raises(CapabilityUnavailable):
        await KubernetesReader(api).table(ObjectQuery("pods"))
    await api.aclose()


def replica_set(revision: int, tag: str, hour: int, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"checkout-{revision}",
            "creationTimestamp": f"2026-11-21T{hour:02}:00:00Z",
            "annotations": {"deployment.kubernetes.io/revision": str(revision), **annotations},
            "ownerReferences": [{"uid": "d1"}],
        },
        "spec": {"template": {"spec": {"containers": [{"image": f"r:5000/checkout:{tag}"}]}}},
    }


def cluster_of(*sets: dict[str, Any], **condition: str) -> KubernetesServer:
    where = "/apis/apps/v1/namespaces/shop"
    progressing = {
        "type": "Progressing",
        "status": "True",
        "reason": "NewReplicaSetAvailable",
        "lastUpdateTime": "2026-11-21T12:30:00Z",
        **condition,
    }
    deployment = {
        "metadata": {"name": "checkout-api", "uid": "d1", "labels": {"app": "checkout"}},
        "status": {"conditions": [progressing]},
    }
    return KubernetesServer(
        {
            f"{where}/deployments/checkout-api": deployment,
            **{f"{where}/replicasets/{one['metadata']['name']}": one for one in sets},
        }
    )


async def deploys(api: KubernetesApi, product: str = "checkout") -> list[Deploy]:
    return list(await KubernetesRollouts(api, [], []).between(product, DAY))


async def test_rollouts_are_deploys_in_order_of_revision(open_api: Open) -> None:
    api = await open_api(cluster_of(replica_set(9, "v1", 9), replica_set(10, "v2", 12)))
    assert await deploys(api) == [
        Deploy("checkout", "v2", NOW.replace(hour=12), "kubernetes", previous_version="v1"),
        Deploy("checkout", "v1", NOW.replace(hour=9), "kubernetes"),
    ]
    assert await deploys(api, "checkout-api") == await deploys(api)
    assert await deploys(api, "payments") == []


@pytest.mark.parametrize(
    ("labels", "preferred", "product"),
    [
        ({"app.kubernetes.io/name": "basket"}, [], "basket"),
        ({"app": "checkout", "team": "shop-core"}, [], "shop-core"),
        ({"app": "checkout", "acme.io/system": "shop"}, ["acme.io/system"], "shop"),
        ({}, [], "checkout-api"),
        ({}, [], "shop/checkout-api"),
    ],
)
async def test_a_deployment_is_found_by_the_labels_that_alerts_and_metrics_are(
    open_api: Open, labels: dict[str, str], preferred: list[str], product: str
) -> None:
    server = cluster_of(replica_set(1, "v1", 9))
    path = "/apis/apps/v1/namespaces/shop/deployments/checkout-api"
    server.objects[path]["metadata"]["labels"] = labels
    rollouts = KubernetesRollouts(await open_api(server), preferred, [])
    assert [one.version for one in await rollouts.between(product, DAY)] == ["v1"]
    assert not await rollouts.between("payments", DAY)


async def test_a_rollback_has_the_age_of_its_condition_and_not_of_its_replica_set(
    open_api: Open,
) -> None:
    history = {"deployment.kubernetes.io/revision-history": "1"}
    api = await open_api(cluster_of(replica_set(2, "v2", 12), replica_set(3, "v1", 1, **history)))
    newest = (await deploys(api))[0]
    assert (newest.version, newest.status, newest.previous_version, newest.at) == (
        "v1",
        "rolled_back",
        "v2",
        NOW.replace(hour=12, minute=30),
    )


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ({"status": "False", "reason": "ProgressDeadlineExceeded"}, "failed"),
        ({"reason": "ReplicaSetUpdated"}, "running"),
        ({}, "ok"),
    ],
)
async def test_the_newest_rollout_has_its_status(
    open_api: Open, condition: dict[str, str], status: str
) -> None:
    api = await open_api(cluster_of(replica_set(1, "v1", 9), **condition))
    assert [one.status for one in await deploys(api)] == [status]


async def test_the_configured_cluster_is_read(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, {"token": "abc"})
    settings = KubernetesSettings(kind="kubeconfig", kubeconfig=str(file), namespaces=("shop",))
    async with AsyncExitStack() as stack:
        cluster = await open_cluster(settings, stack)
        observed = make_observed(
            Settings(), FakeClock(), FakeDeploys(), FakeHistory(), stack, cluster
        )((), "c")
        assert isinstance(observed.kubernetes, KubernetesReader)
        assert isinstance(observed.rollouts, KubernetesRollouts)
        assert isinstance(observed.offer, KubernetesOffer)


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "kubeconfig", "kubeconfig": "/nowhere/config"},
        {"kind": "cluster"},
    ],
)
async def test_a_cluster_that_cannot_be_read_stops_the_start(settings: dict[str, str]) -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigurationError, match="kubernetes"):
            await open_cluster(KubernetesSettings.model_validate(settings), stack)
