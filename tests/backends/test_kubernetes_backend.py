"""What holds on any cluster, asked of a real one: `KORTEX_TEST_KUBE_URL`.

`KORTEX_TEST_KUBE_TOKEN` is a reader's bearer token, `KORTEX_TEST_KUBE_CA` the file of its authority.
"""

import os
import ssl
from collections.abc import AsyncIterator

import pytest

from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.kubernetes.offer import KubernetesOffer
from adapters.kubernetes.reader import KubernetesReader
from tools.cluster_objects import ObjectQuery, PodLogQuery
from tools.errors import InvalidArguments

pytestmark = [
    pytest.mark.backends,
    pytest.mark.skipif("KORTEX_TEST_KUBE_URL" not in os.environ, reason="no cluster is given"),
]


@pytest.fixture
async def api() -> AsyncIterator[KubernetesApi]:
    authority = os.environ.get("KORTEX_TEST_KUBE_CA")
    tls = ssl.create_default_context(cafile=authority) if authority else None
    token = os.environ.get("KORTEX_TEST_KUBE_TOKEN", "")
    access = Access(os.environ["KORTEX_TEST_KUBE_URL"], tls, lambda: token, "default")
    opened = KubernetesApi(access)
    yield opened
    await opened.aclose()


async def test_objects_are_listed_as_kubectl_shows_them(api: KubernetesApi) -> None:
    found = await KubernetesReader(api).table(ObjectQuery("namespaces"))
    assert list(found.columns) == ["Name", "Status", "Age"]
    assert "default" in [row[0] for row in found.rows]


async def test_an_object_is_described_and_its_events_listed(api: KubernetesApi) -> None:
    reader = KubernetesReader(api)
    found = await reader.describe(ObjectQuery("namespace", name="default"))
    assert found["kind"] == "Namespace"
    assert "managedFields" not in str(found)
    await reader.events(ObjectQuery("", "default"))


async def test_an_unknown_or_hidden_object_is_refused(api: KubernetesApi) -> None:
    reader = KubernetesReader(api)
    with pytest.raises(InvalidArguments, match="not found"):
        await reader.describe(ObjectQuery("pod", "default", "kortex-has-no-such-pod"))
    with pytest.raises(InvalidArguments, match="not found"):
        await reader.logs(PodLogQuery("default", "kortex-has-no-such-pod"))
    with pytest.raises(InvalidArguments, match="secrets are never shown"):
        await reader.table(ObjectQuery("secrets"))


async def test_kinds_and_their_fields_are_reported(api: KubernetesApi) -> None:
    offer = KubernetesOffer(api)
    kinds = {one.kind: one for one in await offer.kinds()}
    assert kinds["Deployment"].api_version == "apps/v1"
    found = await offer.schema("Deployment", "apps/v1", "spec.template.spec.containers")
    fields = {one.path: one for one in found.fields}
    assert fields["spec.template.spec.containers[].image"].type == "string"
    assert fields["spec.template.spec.containers[].name"].required
    with pytest.raises(InvalidArguments, match="has no apps/v9"):
        await offer.schema("Deployment", "apps/v9", "")
