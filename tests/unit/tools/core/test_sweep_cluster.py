"""core__sweep_cluster: failures with their reason; unread parts; bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from adapters.kubernetes.hiding import shown
from adapters.kubernetes.kinds import kind_of
from tests.cluster_objects import (
    HASH,
    PRODUCTS,
    Object,
    ago,
    built,
    claim,
    container,
    deployment,
    ended,
    event,
    node,
    pod,
    unscheduled,
    waiting,
)
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.tools import bench
from tests.packs import NOW
from tools.cluster_objects import ClusterEvent, ObjectList, ObjectQuery, PodLogQuery
from tools.core.cluster_reading import ALWAYS, BESIDE, MOST_LOGS, NOT_READ_BESIDE, STORAGE
from tools.core.sweep_cluster import MOST_REASON, MOST_ROWS, SweepCluster
from tools.errors import InvalidArguments, UpstreamFailed

CRASHED = waiting("CrashLoopBackOff", lastState=ended(), restartCount=2)


@dataclass
class Cluster:
    """Lists objects; a kind in `refused` raises that, and `*` is refused where `spaces` says so."""

    found: Sequence[Object] = ()
    happened: Sequence[ClusterEvent] = ()
    lines: Sequence[str] = ()
    refused: Mapping[str, Exception] = field(default_factory=dict)
    spaces: bool = False
    unread: int = 0
    asked: list[ObjectQuery | PodLogQuery] = field(default_factory=list)

    async def objects(self, query: ObjectQuery) -> ObjectList:
        self.asked.append(query)
        if query.kind in self.refused:
            raise self.refused[query.kind]
        if self.spaces and query.namespace == "*":
            raise InvalidArguments("namespace: readable are fleet")
        name = kind_of(query.kind).name
        own = [shown(one) for one in self.found if one["kind"] == name]
        return ObjectList(own, unread=self.unread)

    async def events(self, query: ObjectQuery) -> Sequence[ClusterEvent]:
        return self.happened

    async def logs(self, query: PodLogQuery) -> Sequence[str]:
        self.asked.append(query)
        return self.lines


async def sweep(cluster: Cluster) -> dict[str, Any]:
    run = bench([SweepCluster()], caps=fake_capabilities(kubernetes=cluster))
    outcome = await run.run("{}", "core__sweep_cluster", now=NOW, products=PRODUCTS)
    assert outcome.record.ok, outcome.content
    told: dict[str, Any] = orjson.loads(outcome.content)
    return told


def crashed(product: str) -> Object:
    return pod(product, CRASHED)


async def test_a_healthy_cluster_reports_no_problem() -> None:
    found = await sweep(Cluster([node(), deployment(), pod()]))

    assert (found["ill"], found["risks"], found["warnings"], found["unread"]) == ([], [], [], [])
    assert (found["pods"], found["nodes"]) == ({"billing": "1 of 1 well"}, "1 of 1 ready")


async def test_a_crash_is_reported_with_the_last_lines_of_the_previous_run() -> None:
    cluster = Cluster([node(), crashed("billing")], lines=["panic: no such host ledger"])
    found = await sweep(cluster)

    (ill,) = found["ill"]
    assert (ill["product"], ill["impact"]) == ("billing", "down")
    assert ill["detail"].endswith("its log ends: panic: no such host ledger")
    logs = [one for one in cluster.asked if isinstance(one, PodLogQuery)]
    assert [(one.container, one.previous) for one in logs] == [("app", True)]


async def test_the_end_of_a_long_reason_is_kept() -> None:
    said = f"0/1 nodes are available: {'x' * 400}: the reason"
    found = await sweep(Cluster([node(), unscheduled(message=said)]))

    assert found["ill"][0]["detail"].endswith("the reason")


@pytest.mark.parametrize("number", [1, 30])
async def test_many_crashes_cost_few_requests_and_few_rows(number: int) -> None:
    pods = [pod(f"billing-{n}", CRASHED) for n in range(number)]
    cluster = Cluster([node(), *pods], lines=["ERROR x"])
    found = await sweep(cluster)

    assert found["requests"] <= 2 + len(ALWAYS) + MOST_LOGS
    assert len(found["ill"]) == min(number, MOST_ROWS)
    assert found["truncated"] is (number > MOST_ROWS)


async def test_volumes_are_read_only_where_a_pod_waits() -> None:
    calm, waits = Cluster([node(), pod()]), Cluster([node(), unscheduled(message="no")])
    for cluster in (calm, waits):
        await sweep(cluster)

    kinds = {kind for kind, _ in STORAGE}
    assert kinds.isdisjoint(one.kind for one in calm.asked if isinstance(one, ObjectQuery))
    assert kinds <= {one.kind for one in waits.asked if isinstance(one, ObjectQuery)}


async def test_what_no_pod_shows_is_read_only_where_nothing_is_down_and_else_reported() -> None:
    missed = built(
        "CronJob",
        "billing-close",
        spec={"suspend": True, "schedule": "@daily"},
        status={"lastScheduleTime": ago(hours=30)},
    )
    calm, down = Cluster([node(), pod(), missed]), Cluster([node(), crashed("billing"), missed])
    found = await sweep(calm)
    partly = await sweep(down)

    assert [one["mechanism"] for one in found["ill"]] == ["CronJob is suspended"]
    kinds = {kind for kind, _ in BESIDE}
    assert kinds.isdisjoint(one.kind for one in down.asked if isinstance(one, ObjectQuery))
    assert (found["unread"], partly["unread"]) == ([], [NOT_READ_BESIDE])
    assert all(kind in NOT_READ_BESIDE for kind in kinds)


async def test_a_forbidden_kind_is_named_and_the_others_are_reported() -> None:
    denied = UpstreamFailed("services is forbidden: User cannot list", 403)
    refused = {"services": denied, "nodes": denied}
    found = await sweep(Cluster([crashed("billing")], refused=refused))

    assert found["unread"] == [
        "nodes, services could not be read: services is forbidden: User cannot list",
        NOT_READ_BESIDE,
    ]
    assert [one["product"] for one in found["ill"]] == ["billing"]


async def test_without_pods_there_is_no_result() -> None:
    cluster = Cluster(refused={"pods": UpstreamFailed("503", 503)})
    run = bench([SweepCluster()], caps=fake_capabilities(kubernetes=cluster))
    outcome = await run.run("{}", "core__sweep_cluster", now=NOW, products=PRODUCTS)

    assert not outcome.record.ok


async def test_only_the_permitted_namespaces_are_read() -> None:
    found = await sweep(Cluster([node(), crashed("billing")], spaces=True))

    assert [one["product"] for one in found["ill"]] == ["billing"]


async def test_entries_that_are_not_objects_are_counted() -> None:
    found = await sweep(Cluster([node(), pod()], unread=1))

    assert any("entries of lists could not be read" in one for one in found["unread"])


@pytest.mark.parametrize(
    ("kind", "minutes", "over"),
    [("Pod", 1, True), ("Ingress", 1, False), ("Ingress", 40, True)],
)
async def test_a_warning_about_another_kind_is_current_while_it_is_new(
    kind: str, minutes: int, over: bool
) -> None:
    warned = event(kind, "billing", "Sync", "certificate expired", minutes=minutes)
    found = await sweep(Cluster([node(), pod()], [warned]))

    assert [one["over"] for one in found["warnings"]] == [over]


async def test_foreign_products_are_counted_and_not_named() -> None:
    found = await sweep(Cluster([node(), crashed("foreign")]))

    assert (found["ill"], found["others_ill"]) == ([], 1)


async def test_databases_are_recognised_by_their_images() -> None:
    image = container("server") | {"image": "registry.example/library/mariadb:11"}
    spec = {"template": {"metadata": {}, "spec": {"containers": [image]}}}
    found = await sweep(Cluster([node(), deployment("ledger", kind="StatefulSet", spec=spec)]))

    assert found["datastores"] == [{"product": "ledger", "technology": "mysql", "is_new": False}]


async def test_hostile_text_becomes_one_clean_short_line() -> None:
    said = "\x1b[31m" + "\n@here <!channel> \u202e" * 500
    hostile = pod("billing", waiting("CreateContainerError", said), name=f"billing-{HASH}-k2m4p")
    found = await sweep(Cluster([node(), hostile, claim(), built("Job", "x")]))

    detail = found["ill"][0]["detail"]
    assert len(detail) <= MOST_REASON
    assert detail.isprintable()
