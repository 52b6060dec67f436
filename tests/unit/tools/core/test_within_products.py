"""Tools that are not asked by product keep to the channel's products by themselves."""

from datetime import timedelta

import orjson
import pytest

from tests.fakes.capabilities import (
    NOW,
    FakeDeploys,
    FakeHistory,
    FakeTraces,
    fake_capabilities,
    nanoseconds,
)
from tests.fakes.tools import ALL, bench
from tools.capabilities import Capabilities, Deploy, PastIncident, Span, Trace
from tools.contract import AnyTool
from tools.core.get_incident_history import GetIncidentHistory
from tools.core.get_recent_deploys import GetRecentDeploys
from tools.core.get_traces import GetTraces
from tools.core.platform_tools import GetWorkflow, ListApplications, ListResources, ListWorkflows
from tools.platform import Application, PlatformResource, Workflow
from tools.policy import ToolPolicy
from tools.products import Reading
from tools.records import ToolOutcome

TOOLS: list[AnyTool] = [
    GetRecentDeploys(),
    GetIncidentHistory(),
    GetTraces(),
    GetWorkflow(),
    ListApplications(),
    ListResources(),
    ListWorkflows(),
]
MINE = frozenset({"platform:alice"})
POLICY = ToolPolicy(ALL.toolsets, granted_connections=MINE)


class TwoApplications:
    """`Platform` of two applications, as far as it is asked here."""

    async def applications(self, call: object) -> list[Application]:
        return [Application("checkout"), Application("payments")]

    async def resources(self, *_: object) -> list[PlatformResource]:
        return [PlatformResource("db", "", "checkout"), PlatformResource("db", "", "payments")]

    async def workflows(self, *_: object) -> list[Workflow]:
        return [Workflow("1", "deploy", "checkout"), Workflow("2", "deploy", "payments")]

    async def workflow(self, workflow_id: str, call: object) -> Workflow:
        return Workflow(workflow_id, "deploy", workflow_id)


def caps() -> Capabilities:
    ago = NOW - timedelta(minutes=5)
    spans = [
        Span(service, "", service, "op", nanoseconds(NOW) // 1000, 100)
        for service in ("checkout", "payments")
    ]
    return fake_capabilities(
        deploys=FakeDeploys([Deploy("checkout", "v2", ago), Deploy("payments", "v9", ago)]),
        incidents=FakeHistory(
            [
                PastIncident(p or "none", f"errors of {p}", ago, product=p)
                for p in ("checkout", "payments", "")
            ]
        ),
        traces=FakeTraces({"own": Trace("own", spans[:1]), "both": Trace("both", spans)}),
        platform=TwoApplications(),
    )


async def ask(tool: str, given: dict[str, str], reading: Reading = Reading.PRODUCTS) -> ToolOutcome:
    return await bench(TOOLS, POLICY, caps()).run(
        orjson.dumps(given).decode(),
        f"core__{tool}",
        products=("checkout",),
        reading=reading,
        connection_ids=MINE,
    )


ASKED: dict[str, dict[str, str]] = {
    "get_recent_deploys": {"product": "*", "time_range": "last 30m"},
    "get_incident_history": {"query": "errors"},
    "list_applications": {},
    "list_resources": {},
    "list_workflows": {},
}


@pytest.mark.parametrize("tool", ASKED)
async def test_a_tool_without_a_product_argument_returns_the_channels_products(tool: str) -> None:
    everything = await ask(tool, ASKED[tool], Reading.ALL)
    own = await ask(tool, ASKED[tool])
    assert "payments" in everything.content
    assert own.record.ok
    assert "checkout" in own.content
    assert "payments" not in own.content


@pytest.mark.parametrize(
    ("tool", "argument", "own", "theirs"),
    [("get_traces", "request_id", "own", "both"), ("get_workflow", "workflow_id", "checkout", "x")],
)
async def test_an_object_of_another_channel_is_refused_by_id(
    tool: str, argument: str, own: str, theirs: str
) -> None:
    refused = await ask(tool, {argument: theirs})
    assert (await ask(tool, {argument: own})).record.ok
    assert (await ask(tool, {argument: theirs}, Reading.ALL)).record.ok
    assert not refused.record.ok
    assert "this channel's products" in refused.content
    assert "payments" not in refused.content
