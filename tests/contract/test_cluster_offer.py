"""What a recorded cluster and the Kubernetes API offer keeps one contract; and the tools over it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.kubernetes.offer import KubernetesOffer
from adapters.recorded.simulator.cluster_offer import RecordedOffer
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.kubernetes_server import TOKEN, KubernetesServer
from tests.fakes.tools import bench
from tools.cluster_offer import ClusterOffer
from tools.contract import AnyTool
from tools.core.cluster_kinds import GetResourceSchema, SearchCapabilities
from tools.errors import InvalidArguments, UpstreamFailed

Serve = Callable[[web.Application], Awaitable[TestServer]]
SCHEMAS = "#/components/schemas/"


class ClusterOfferContract:
    """Run against every implementation: Deployments, and an operator's PostgresCluster."""

    async def test_kinds_are_listed_once_with_their_version(self, offer: ClusterOffer) -> None:
        found = {one.kind: one for one in await offer.kinds()}
        assert len(found) == len(await offer.kinds())
        assert found["Deployment"].api_version == "apps/v1"
        assert found["PostgresCluster"].api_version == "data.shop.example/v1"
        assert "Postgres" in found["PostgresCluster"].description

    async def test_a_kind_shows_two_levels_of_its_fields(self, offer: ClusterOffer) -> None:
        found = await offer.schema("Deployment", "apps/v1", "")
        fields = {one.path: one for one in found.fields}
        assert next(one.path for one in found.fields) == "spec"
        assert (fields["spec.replicas"].type, fields["spec.replicas"].required) == (
            "integer",
            False,
        )
        assert fields["spec.template"].required
        assert fields.keys().isdisjoint({"metadata", "status", "kind"})
        assert found.more

    async def test_a_field_is_followed_down_through_lists(self, offer: ClusterOffer) -> None:
        found = await offer.schema("deployment", "apps/v1", "spec.template.spec.containers")
        fields = {one.path: one for one in found.fields}
        assert fields["spec.template.spec.containers[].image"].type == "string"
        assert fields["spec.template.spec.containers[].name"].required
        assert fields["spec.template.spec.containers[].ports[]"].type == "list of object"

    @pytest.mark.parametrize(
        ("kind", "version", "field", "words"),
        [
            ("Deploymint", "apps/v1", "", "it has: .*Deployment"),
            ("Deployment", "apps/v9", "", "no apps/v9"),
            ("Deployment", "apps/v1", "spec.replica", "replicas"),
        ],
    )
    async def test_an_unknown_kind_or_field_is_reported(
        self, offer: ClusterOffer, kind: str, version: str, field: str, words: str
    ) -> None:
        with pytest.raises(InvalidArguments, match=words):
            await offer.schema(kind, version, field)


class TestRecordedOffer(ClusterOfferContract):
    @pytest.fixture
    def offer(self) -> ClusterOffer:
        return RecordedOffer()


def resource(kind: str, plural: str, *verbs: str) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced",
        "verbs": list(verbs),
        "shortNames": [plural[:2]],
    }


def discovery(*groups: tuple[str, dict[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    return {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": name} if name else {},
                "versions": [{"version": v, "resources": r} for v, r in versions.items()],
            }
            for name, versions in groups
        ],
    }


def group_kind(kind: str, group: str = "apps", version: str = "v1") -> list[dict[str, str]]:
    return [{"group": group, "version": version, "kind": kind}]


def apps_document() -> dict[str, Any]:
    """As kube-apiserver writes it: references within allOf, a kind that holds itself."""
    container = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "image": {"type": "string"},
            "ports": {"type": "array", "items": {"$ref": f"{SCHEMAS}Port"}},
            "nested": {"$ref": f"{SCHEMAS}Container"},
        },
    }
    template = {"properties": {"spec": {"$ref": f"{SCHEMAS}PodSpec"}}, "type": "object"}
    spec = {
        "type": "object",
        "required": ["template"],
        "properties": {
            "replicas": {"type": "integer", "description": "Number of\n desired pods."},
            "template": {"allOf": [{"$ref": f"{SCHEMAS}Template"}], "default": {}},
        },
    }
    deployment = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "status": {"type": "object"},
            "spec": {"allOf": [{"$ref": f"{SCHEMAS}Spec"}], "default": {}},
        },
        "x-kubernetes-group-version-kind": group_kind("Deployment"),
    }
    pod_spec = {
        "type": "object",
        "properties": {"containers": {"type": "array", "items": {"$ref": f"{SCHEMAS}Container"}}},
    }
    port = {"type": "object", "properties": {"containerPort": {"type": "integer"}}}
    named = {"Container": container, "Template": template, "Spec": spec, "PodSpec": pod_spec}
    return {"components": {"schemas": {**named, "Port": port, "Deployment": deployment}}}


def objects(**changes: Any) -> dict[str, Any]:
    custom = {
        "items": [
            {
                "spec": {
                    "group": "data.shop.example",
                    "names": {"kind": "PostgresCluster"},
                    "versions": [{"schema": {"openAPIV3Schema": {"description": "A Postgres."}}}],
                }
            }
        ]
    }
    return {
        "/api": discovery(("", {"v1": [resource("Service", "services", "create", "get")]})),
        "/apis": discovery(
            (
                "apps",
                {
                    "v1": [
                        resource("Deployment", "deployments", "create"),
                        resource("Scale", "deployments/scale", "get"),
                    ],
                    "v1beta1": [resource("Deployment", "deployments", "create")],
                },
            ),
            ("data.shop.example", {"v1": [resource("PostgresCluster", "pgs", "create")]}),
        ),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": custom,
        "/openapi/v3/apis/apps/v1": apps_document(),
        **changes,
    }


Open = Callable[[dict[str, Any]], Awaitable[tuple[ClusterOffer, KubernetesServer]]]


@pytest.fixture
async def opened(aiohttp_server: Serve) -> AsyncIterator[Open]:
    apis: list[KubernetesApi] = []

    async def open_offer(held: dict[str, Any]) -> tuple[ClusterOffer, KubernetesServer]:
        server = KubernetesServer(held)
        running = await aiohttp_server(server.app())
        apis.append(KubernetesApi(Access(str(running.make_url("/")), None, lambda: TOKEN, "shop")))
        return KubernetesOffer(apis[-1]), server

    yield open_offer
    for api in apis:
        await api.aclose()


class TestKubernetesOffer(ClusterOfferContract):
    @pytest.fixture
    async def offer(self, opened: Open) -> ClusterOffer:
        return (await opened(objects()))[0]


async def test_kinds_are_cached_and_only_creatable_ones_count(opened: Open) -> None:
    offer, server = await opened(objects())
    assert [one.kind for one in await offer.kinds()] == ["Service", "Deployment", "PostgresCluster"]
    asked = len(server.requests)
    await offer.kinds()
    assert len(server.requests) == asked


async def test_a_reader_without_access_to_definitions_still_sees_custom_kinds(opened: Open) -> None:
    custom = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    held = {path: item for path, item in objects().items() if path != custom}
    offer, _ = await opened(held)
    (found,) = [one for one in await offer.kinds() if one.kind == "PostgresCluster"]
    assert found.description == ""


async def test_an_api_server_without_aggregated_discovery_is_reported(opened: Open) -> None:
    offer, _ = await opened(objects(**{"/api": {"kind": "APIVersions", "versions": ["v1"]}}))
    with pytest.raises(UpstreamFailed, match=r"older than Kubernetes 1\.26"):
        await offer.kinds()


async def ask(tool: str, **arguments: object) -> tuple[dict[str, Any], str]:
    tools: list[AnyTool] = [SearchCapabilities(), GetResourceSchema()]
    b = bench(tools, caps=fake_capabilities(offer=RecordedOffer()))
    outcome = await b.run(orjson.dumps(arguments).decode(), f"core__{tool}")
    return orjson.loads(outcome.content), outcome.summary


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("postgres database", "PostgresCluster"),
        ("hpa", "HorizontalPodAutoscaler"),
        ("autoscale pods", "HorizontalPodAutoscaler"),
        ("stateless service", "Deployment"),
        ("deployments", "Deployment"),
        ("StatefulSet", "StatefulSet"),
    ],
)
async def test_an_intent_finds_the_kind_for_it(query: str, first: str) -> None:
    body, _ = await ask("search_capabilities", query=query)
    assert body["capabilities"][0]["kind"] == first


async def test_an_intent_without_a_matching_kind_is_reported() -> None:
    body, summary = await ask("search_capabilities", query="blockchain")
    assert body["capabilities"] == []
    assert body["notes"] == ["none of 5 kinds fits; try other words"]
    assert summary == 'no kinds for "blockchain"'
    assert (await ask("search_capabilities", query="???"))[0]["error"] == "validation"


async def test_a_schema_marks_its_required_fields() -> None:
    body, summary = await ask(
        "get_resource_schema", kind="PostgresCluster", api_version="data.shop.example/v1"
    )
    assert {"path": "spec.version", "type": "string", "required": True,
            "description": "Major version of Postgres."} in body["fields"]  # fmt: skip
    assert summary == "PostgresCluster: 5 fields"


@pytest.mark.parametrize("version", ["../v1", "apps/../v1", "apps/v1/x", "APPS/v1", "", "apps"])
async def test_an_invalid_version_is_refused(version: str) -> None:
    body, _ = await ask("get_resource_schema", kind="Deployment", api_version=version)
    assert body["error"] == "validation"
