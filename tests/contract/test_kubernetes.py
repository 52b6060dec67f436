"""A recorded cluster and the Kubernetes API keep the same contract: read, and nothing secret."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.kubernetes.reader import KubernetesReader
from adapters.recorded.packs.capture import take_cluster
from adapters.recorded.packs.schema import ClusterState, document_of
from adapters.recorded.player.cluster import RecordedKubernetes
from adapters.recorded.simulator.cluster import NAMESPACE, SimulatedCluster
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.scenario import INCIDENTS
from tests.fakes.kubernetes_server import TOKEN, KubernetesServer
from tests.fakes.set_clock import SetClock
from tools.cluster_objects import Kubernetes, ObjectQuery, PodLogQuery
from tools.errors import InvalidArguments

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
Serve = Callable[[web.Application], Awaitable[TestServer]]


def read_cluster(content: bytes) -> set[tuple[object, object]]:
    objects = document_of(content, ClusterState, "kubernetes.json").objects
    metadata = [(one["kind"], one["metadata"]) for one in objects]
    return {(kind, about["name"]) for kind, about in metadata if isinstance(about, dict)}


class KubernetesContract:
    """Run against every implementation. The namespace holds pod checkout-1 and its Deployment."""

    @pytest.mark.parametrize("kind", ["pods", "Pod", "po", "PODS"])
    async def test_objects_are_listed_as_a_table(self, cluster: Kubernetes, kind: str) -> None:
        found = await cluster.table(ObjectQuery(kind))
        assert found.columns[0] == "Name"
        assert "checkout-1" in [row[0] for row in found.rows]
        assert {len(row) for row in found.rows} == {len(found.columns)}

    async def test_objects_of_all_namespaces_show_their_namespace(
        self, cluster: Kubernetes
    ) -> None:
        found = await cluster.table(ObjectQuery("deployments", namespace="*"))
        assert found.columns[:2] == ["Namespace", "Name"]
        assert [NAMESPACE, "checkout"] in [list(row[:2]) for row in found.rows]

    @pytest.mark.parametrize("space", [NAMESPACE, "*", ""])
    async def test_complete_objects_of_a_kind_omit_secrets(
        self, cluster: Kubernetes, space: str
    ) -> None:
        found = await cluster.objects(ObjectQuery("pods", space))
        text = orjson.dumps(list(found.objects)).decode()
        assert "checkout-1" in {dict(one)["metadata"]["name"] for one in found.objects}  # type: ignore[index,call-overload]
        assert {one["kind"] for one in found.objects} == {"Pod"}
        assert "DATABASE_PASSWORD" in text
        assert "not for you" not in text
        assert (found.more, found.unread) == (False, 0)

    async def test_a_described_object_omits_secrets(self, cluster: Kubernetes) -> None:
        found = await cluster.describe(ObjectQuery("pod", NAMESPACE, "checkout-1"))
        assert (found["kind"], found["metadata"]["name"]) == ("Pod", "checkout-1")  # type: ignore[index,call-overload]
        text = orjson.dumps(found).decode()
        assert "DATABASE_PASSWORD" in text
        assert "not for you" not in text

    async def test_an_object_for_a_case_is_readable_and_omits_secrets(
        self, cluster: Kubernetes
    ) -> None:
        state, _notes = await take_cluster(cluster, ["checkout"])
        text = orjson.dumps(state)
        found = read_cluster(text)
        assert {("Pod", "checkout-1"), ("Deployment", "checkout")} <= found
        assert b"not for you" not in text

    @pytest.mark.parametrize("name", ["checkout-99", "no-such"])
    async def test_an_unknown_object_is_reported(self, cluster: Kubernetes, name: str) -> None:
        with pytest.raises(InvalidArguments, match=f'"{name}" not found'):
            await cluster.describe(ObjectQuery("pod", NAMESPACE, name))
        with pytest.raises(InvalidArguments, match="not found"):
            await cluster.logs(PodLogQuery(NAMESPACE, name))

    @pytest.mark.parametrize("kind", ["secret", "secrets", "Secrets", "tokenreviews", "pods/exec"])
    async def test_secrets_and_write_verbs_are_refused(
        self, cluster: Kubernetes, kind: str
    ) -> None:
        for question in (cluster.table, cluster.describe, cluster.objects):
            with pytest.raises(InvalidArguments, match="kind"):
                await question(ObjectQuery(kind, NAMESPACE, "checkout-1"))

    @pytest.mark.parametrize("name", ["../secrets/x", "a/b", "a%2fb", "A", "a..b", "-a", "a\n"])
    async def test_a_name_cannot_escape_its_path(self, cluster: Kubernetes, name: str) -> None:
        with pytest.raises(InvalidArguments, match="name"):
            await cluster.describe(ObjectQuery("pods", NAMESPACE, name))
        with pytest.raises(InvalidArguments, match="name"):
            await cluster.logs(PodLogQuery(NAMESPACE, name))

    async def test_the_newest_lines_of_a_container_are_returned(self, cluster: Kubernetes) -> None:
        lines = await cluster.logs(PodLogQuery(NAMESPACE, "checkout-1", tail=3))
        assert len(lines) == 3
        assert list(lines) == sorted(lines)

    async def test_a_misspelt_container_is_an_error_and_not_an_empty_log(
        self, cluster: Kubernetes
    ) -> None:
        with pytest.raises(InvalidArguments, match="container chekcout is not valid for pod"):
            await cluster.logs(PodLogQuery(NAMESPACE, "checkout-1", container="chekcout"))

    async def test_a_container_that_never_restarted_has_no_previous_log(
        self, cluster: Kubernetes
    ) -> None:
        with pytest.raises(InvalidArguments, match="previous terminated container"):
            await cluster.logs(PodLogQuery(NAMESPACE, "checkout-1", previous=True))

    async def test_events_are_those_of_the_object_newest_first(self, cluster: Kubernetes) -> None:
        found = await cluster.events(ObjectQuery("deployment", NAMESPACE, "checkout"))
        assert {(one.kind, one.name, one.reason) for one in found} == {
            ("Deployment", "checkout", "ScalingReplicaSet")
        }
        every = await cluster.events(ObjectQuery("", NAMESPACE))
        times = [one.at for one in every if one.at]
        assert times == sorted(times, reverse=True)
        assert len(every) > len(found)


class TestRecordedKubernetes(KubernetesContract):
    @pytest.fixture
    def cluster(self) -> Kubernetes:
        data = Dataset(INCIDENTS["bad-deploy"](NOW), NOW, 11)
        return RecordedKubernetes(SimulatedCluster(data, SetClock(NOW)), SetClock(NOW))


def pod() -> dict[str, Any]:
    container = {
        "name": "checkout",
        "image": "checkout:v2.4.0",
        "env": [{"name": "DATABASE_PASSWORD", "value": "not for you"}],
    }
    return {
        "kind": "Pod",
        "metadata": {"name": "checkout-1", "namespace": NAMESPACE, "managedFields": [{}]},
        "spec": {"containers": [container]},
        "status": {"phase": "Running"},
    }


def deployment() -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "checkout", "namespace": NAMESPACE}}


def event(kind: str, name: str, minute: int, reason: str = "ScalingReplicaSet") -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.17", "creationTimestamp": f"2026-11-21T13:{minute:02}:00Z"},
        "involvedObject": {"kind": kind, "name": name, "namespace": NAMESPACE, "uid": "u1"},
        "type": "Normal",
        "reason": reason,
        "message": "Scaled up",
        "lastTimestamp": None,
        "eventTime": None,
    }


def server(**changes: Any) -> KubernetesServer:
    fields: dict[str, Any] = {
        "objects": {
            f"/api/v1/namespaces/{NAMESPACE}/pods/checkout-1": pod(),
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/checkout": deployment(),
        },
        "events": [event("Deployment", "checkout", 10), event("Pod", "checkout-1", 20, "Killing")],
        "logs": {"checkout-1/checkout": [f"2026-11-21T14:00:0{n}Z line" for n in range(9)]},
    }
    return KubernetesServer(**{**fields, **changes})


def access(url: str, token: str = TOKEN, tls: ssl.SSLContext | None = None) -> Access:
    return Access(url, tls, lambda: token, NAMESPACE)


class TestKubernetesApi(KubernetesContract):
    @pytest.fixture
    async def cluster(self, aiohttp_server: Serve) -> AsyncIterator[Kubernetes]:
        running = await aiohttp_server(server().app())
        api = KubernetesApi(access(str(running.make_url("/"))))
        yield KubernetesReader(api)
        await api.aclose()
