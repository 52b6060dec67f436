"""The four Kubernetes tools: shapes, limits, and what a missing part does to the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import orjson
import pytest
from pydantic import JsonValue

from tests.fakes.capabilities import NOW, FakeDeploys, fake_capabilities
from tests.fakes.tools import bench
from tools.capabilities import (
    Deploy,
)
from tools.cluster_objects import ClusterEvent, ObjectQuery, ObjectTable, PodLogQuery
from tools.contract import AnyTool
from tools.core.get_recent_deploys import GetRecentDeploys, merged
from tools.core.kubectl import KubectlDescribe, KubectlEvents, KubectlGet, KubectlLogs
from tools.errors import UpstreamFailed

TOOLS: list[AnyTool] = [KubectlGet(), KubectlDescribe(), KubectlEvents(), KubectlLogs()]
EVENT = ClusterEvent(NOW, "Pod", "web-1", "Warning", "BackOff", "Back-off restarting", 12)


@dataclass
class FakeCluster:
    lines: Sequence[str] = ("a", "b")
    happened: Sequence[ClusterEvent] = (EVENT,)
    failure: Exception | None = None
    asked: list[ObjectQuery | PodLogQuery] = field(default_factory=list)
    unread: int = 0

    async def table(self, query: ObjectQuery) -> ObjectTable:
        self.asked.append(query)
        return ObjectTable(
            ["Name", "Status"], [["web-1", "\x1b[31mRunning"]], more=True, unread=self.unread
        )

    async def describe(self, query: ObjectQuery) -> dict[str, JsonValue]:
        return {"kind": "Pod", "spec": {"note": "a\u202eb"}}

    async def events(self, query: ObjectQuery) -> Sequence[ClusterEvent]:
        if self.failure is not None:
            raise self.failure
        return self.happened

    async def logs(self, query: PodLogQuery) -> Sequence[str]:
        self.asked.append(query)
        return self.lines


async def ask(
    tool: str, cluster: FakeCluster, **arguments: object
) -> tuple[dict[str, object], str]:
    b = bench(TOOLS, caps=fake_capabilities(kubernetes=cluster))
    outcome = await b.run(orjson.dumps(arguments).decode(), f"core__{tool}")
    return orjson.loads(outcome.content), outcome.summary


async def test_a_table_says_how_many_entries_were_unreadable() -> None:
    body, _ = await ask("kubectl_get", FakeCluster(unread=2), kind="pods")
    assert "2 columns or objects could not be read" in str(body["notes"])


async def test_a_table_is_shown_unchanged() -> None:
    body, summary = await ask("kubectl_get", FakeCluster(), kind="pods")
    assert body == {
        "columns": ["Name", "Status"],
        "rows": [["web-1", "Running"]],
        "truncated": True,
        "notes": ["more objects exist: narrow by namespace or selector"],
    }
    assert summary == "1+ pods"


async def test_an_object_includes_its_events() -> None:
    body, summary = await ask("kubectl_describe", FakeCluster(), kind="pod", name="web-1")
    assert body == {
        "object": {"kind": "Pod", "spec": {"note": "ab"}},
        "events": [
            {
                "ts": "2026-04-07T14:35:00Z",
                "object": "Pod/web-1",
                "type": "Warning",
                "reason": "BackOff",
                "message": "Back-off restarting",
                "count": 12,
            }
        ],
    }
    assert summary == "pod web-1, 1 event"


async def test_an_object_without_its_events_is_shown() -> None:
    cluster = FakeCluster(failure=UpstreamFailed("forbidden", 403))
    body, _ = await ask("kubectl_describe", cluster, kind="pod", name="web-1")
    assert (body["events"], body["notes"]) == ([], ["events could not be read: forbidden"])


async def test_many_events_are_cut_and_counted() -> None:
    body, summary = await ask("kubectl_events", FakeCluster(happened=[EVENT] * 80))
    assert (len(body["events"]), body["truncated"], body["total_matches"]) == (50, True, 80)  # type: ignore[arg-type]
    assert summary == "80 events, 50 warnings"


async def test_the_newest_log_lines_survive_a_flood() -> None:
    lines = [f"{number} " + "x" * 5000 for number in range(100)]
    body, _ = await ask("kubectl_logs", FakeCluster(lines), pod="web-1", since="30m")
    kept = body["lines"]
    assert isinstance(kept, list)
    assert kept[-1].startswith("99 ")
    assert 0 < len(kept) < 100
    assert body["truncated"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("kubectl_describe", {"kind": "pod", "name": "../x"}),
        ("kubectl_describe", {"kind": "pod"}),
        ("kubectl_logs", {"pod": "a/b"}),
        ("kubectl_logs", {"pod": "a", "tail": 101}),
        ("kubectl_logs", {"pod": "a", "since": "soon"}),
        ("kubectl_events", {"namespace": "A_B"}),
        ("kubectl_get", {"kind": "pods", "name": "a%2fb"}),
    ],
)
async def test_arguments_outside_the_contract_do_not_reach_the_cluster(
    tool: str, arguments: dict[str, object]
) -> None:
    cluster = FakeCluster()
    body, _ = await ask(tool, cluster, **arguments)
    assert (body["error"], cluster.asked) == ("validation", [])


def deploy(version: str, minute: int, commit: str = "", actor: str = "ci") -> Deploy:
    return Deploy("checkout", version, NOW - timedelta(minutes=60 - minute), actor, commit=commit)


def test_a_rollout_also_reported_by_an_event_counts_once() -> None:
    events = [deploy("v2", 10), deploy("main", 20, commit="9f2ab17c0d1e55")]
    rollouts = [
        deploy("v2", 12, actor="kubernetes"),
        deploy("9f2ab17c0d1e", 21, actor="kubernetes"),
        deploy("v3", 30, actor="kubernetes"),
        deploy("v2", 50, actor="kubernetes"),
    ]
    found = [(one.version, one.actor) for one in merged(events, rollouts)]
    assert found == [("v2", "kubernetes"), ("v3", "kubernetes"), ("main", "ci"), ("v2", "ci")]


@pytest.mark.parametrize(
    ("rollouts", "versions", "notes"),
    [
        (FakeDeploys([deploy("v3", 30)]), ["v3", "v2"], None),
        (
            FakeDeploys(failure=UpstreamFailed("forbidden", 403)),
            ["v2"],
            ["not all deploys could be read, because of Kubernetes: forbidden"],
        ),
    ],
)
async def test_deploys_of_both_sources_are_merged(
    rollouts: FakeDeploys, versions: list[str], notes: list[str] | None
) -> None:
    caps = fake_capabilities(deploys=FakeDeploys([deploy("v2", 10)]), rollouts=rollouts)
    b = bench([GetRecentDeploys()], caps=caps)
    arguments = '{"product":"checkout","time_range":"last 2h"}'
    body = orjson.loads((await b.run(arguments, "core__get_recent_deploys")).content)
    assert [one["version"] for one in body["deploys"]] == versions
    assert body.get("notes") == notes


class Crowd(FakeCluster):
    async def table(self, query: ObjectQuery) -> ObjectTable:
        well = [[f"web-{n:03}", "1/1", "Running", "0"] for n in range(80)]
        done = [["migrate", "0/1", "Completed", "0"]]
        ill = [["yes", "0/1", "CrashLoopBackOff", "17 (2m ago)"], ["zoo", "1/1", "Running", "3"]]
        return ObjectTable(
            ["Name", "Ready", "Status", "Restarts"], [*well, *done, *ill], more=False
        )


async def test_unready_objects_come_first_in_a_long_list() -> None:
    body, _ = await ask("kubectl_get", Crowd(), kind="pods")

    assert [row[0] for row in body["rows"]][:3] == ["yes", "zoo", "web-000"]  # type: ignore[attr-defined]
    assert body["notes"] == ["83 objects, 2 not ready or restarted; those come first"]
