"""The platform tools through the runner: shapes, connections, and arguments that fit no path."""

from typing import Any

import orjson
import pytest
from pydantic import JsonValue

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.platform import RecordedPlatform
from adapters.recorded.simulator.scenario import INCIDENTS
from tests.fakes.capabilities import NOW, FakeClock, fake_capabilities
from tests.fakes.tools import ALL, bench
from tools.capabilities import Platform
from tools.contract import AnyTool
from tools.core.platform_tools import (
    GetApplication,
    GetDashboardStats,
    GetWorkflow,
    ListApplications,
    ListResources,
    ListWorkflows,
)
from tools.platform import Application, Workflow
from tools.policy import ToolPolicy

TOOLS: list[AnyTool] = [
    ListApplications(), GetApplication(), ListWorkflows(), GetWorkflow(), ListResources(),
    GetDashboardStats(),
]  # fmt: skip
MINE = frozenset({"platform:alice"})
POLICY = ToolPolicy(ALL.toolsets, granted_connections=MINE)


def recorded() -> Platform:
    return RecordedPlatform(Dataset(INCIDENTS["bad-deploy"](NOW), NOW, 11), FakeClock())


async def ask(
    tool: str,
    platform: Platform | None = None,
    connections: frozenset[str] = MINE,
    **arguments: JsonValue,
) -> tuple[dict[str, JsonValue], str]:
    b = bench(TOOLS, POLICY, fake_capabilities(platform=platform or recorded()))
    text = orjson.dumps(arguments).decode()
    outcome = await b.run(text, f"core__{tool}", connection_ids=connections)
    return orjson.loads(outcome.content), outcome.summary


async def test_applications_are_listed() -> None:
    body, summary = await ask("list_applications")
    assert body["applications"][3] == {  # type: ignore[index]
        "name": "cart", "environment": "production", "status": "running", "resource_count": 1
    }  # fmt: skip
    assert (body["total"], body["truncated"]) == (10, False)
    assert summary == "10 applications"


async def test_an_application_shows_its_resources() -> None:
    body, summary = await ask("get_application", app_name="checkout")
    assert body["resources"] == [
        {
            "name": "orders-db",
            "type": "postgres",
            "app_name": "checkout",
            "status": "running",
            "properties": {"version": "15.6", "max_connections": 40},
        }
    ]
    assert summary == "checkout: running, 1 resource"


async def test_workflows_are_filtered_and_shown_completely() -> None:
    body, summary = await ask("list_workflows", app_name="checkout")
    runs: Any = body["workflows"]
    (run,) = runs
    assert (run["name"], run["status"], run["duration"]) == (
        "deploy checkout v2.4.0",
        "completed",
        "1m 58s",
    )
    assert summary == "1 workflow of checkout"
    whole, words = await ask("get_workflow", workflow_id=int(run["id"]))
    assert [one["name"] for one in whole["steps"]] == ["validate", "provision", "deploy"]  # type: ignore[union-attr,index,call-overload]
    assert words == f"workflow {run['id']}: completed"
    assert (await ask("list_workflows", status="failed"))[1] == "no failed workflows"


async def test_resources_and_statistics_are_shown() -> None:
    body, summary = await ask("list_resources", type="postgres")
    assert [one["name"] for one in body["resources"]] == ["orders-db", "payments-db"]  # type: ignore[union-attr,index,call-overload]
    assert summary == "2 postgres resources"
    stats, words = await ask("get_dashboard_stats")
    assert stats["resource_breakdown"] == {"postgres": 2, "redis": 1, "route": 1}
    assert words == "10 applications, 4 resources, 0 running workflows"


@pytest.mark.parametrize("tool", [one.contract.short_name for one in TOOLS])
async def test_without_a_granted_connection_nothing_runs(tool: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "get_application": {"app_name": "checkout"},
        "get_workflow": {"workflow_id": "1"},
    }
    arguments = given.get(tool, {})
    for connections in (frozenset[str](), frozenset({"platform:mallory"})):
        body, _ = await ask(tool, connections=connections, **arguments)
        assert body["error"] == "policy_denied"


class Unasked(RecordedPlatform):
    """Nothing may reach it."""

    async def application(self, name: str, call: object) -> Application:
        raise AssertionError(name)

    async def workflow(self, workflow_id: str, call: object) -> Workflow:
        raise AssertionError(workflow_id)


@pytest.mark.parametrize("name", ["../stats", "a/b", "a%2fb", "..", "a b", "a\n"])
async def test_a_name_that_is_not_a_path_segment_is_refused(name: str) -> None:
    platform = Unasked(Dataset(INCIDENTS["quiet-day"](NOW), NOW, 11), FakeClock())
    for tool, key in (("get_application", "app_name"), ("get_workflow", "workflow_id")):
        named: dict[str, Any] = {key: name}
        body, _ = await ask(tool, platform, **named)
        assert body["error"] == "validation"


class Many(RecordedPlatform):
    """More applications than a model is shown, of hostile names."""

    async def applications(self, call: object) -> list[Application]:
        del call
        return [Application(f"\x1b[31mapp\u202e-{n}") for n in range(150)]


async def test_a_long_list_is_cut_and_says_so() -> None:
    data = Dataset(INCIDENTS["quiet-day"](NOW), NOW, 11)
    body, summary = await ask("list_applications", Many(data, FakeClock()))
    assert (len(body["applications"]), body["total"], body["truncated"]) == (100, 150, True)  # type: ignore[arg-type]
    assert body["applications"][0] == {"name": "app-0"}  # type: ignore[index]
    assert summary == "150 applications"
