"""The operators' view of the tools: offered or why not, schema costs, and the calls' health."""

from dataclasses import replace
from datetime import timedelta

from bot.app.rules import TOOLSETS
from bot.domain.tool_status import ToolHealth, ToolReport, report_from_json
from bot.reports.tools import tool_report, toolset_costs
from bot.telemetry.metrics import Metrics
from bot.web.api.models import Tools
from tests.fakes.capabilities import NOW, fake_capabilities
from tests.fakes.tools import FakeTool, contract
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy
from tools.records import ToolInvocationRecord

CORE = core_tools(CursorSigner(b"k" * 32))


def called(metrics: Metrics, seconds: float, error: ToolErrorCode | None = None) -> None:
    ended = NOW + timedelta(seconds=seconds)
    metrics.tool_called(
        ToolInvocationRecord(
            "c", "core__a", {}, error is None, error, "", NOW, ended, 2, truncated=False
        )
    )


def test_the_calls_of_the_process_are_counted_by_outcome_with_their_latency() -> None:
    metrics = Metrics()
    for _ in range(9):
        called(metrics, 0.2)
    called(metrics, 4.0, ToolErrorCode.UPSTREAM)

    health = metrics.tool_health()

    assert health == {"core__a": ToolHealth({"ok": 9, "upstream": 1}, 0.25, 5.0)}
    assert health["core__a"].as_words() == "10 calls, 1 upstream, half under 0.25 s, 95 % under 5 s"


def test_a_latency_above_every_bucket_says_so() -> None:
    metrics = Metrics()
    called(metrics, 301.0)

    assert metrics.tool_health()["core__a"].most_under_s is None
    assert metrics.tool_health()["core__a"].as_words().endswith("95 % over 5 minutes")


def status(report: ToolReport, name: str) -> str:
    return next(each.as_words() for each in report.tools if each.id == name)


def test_each_tool_says_whether_it_is_offered_and_why_not() -> None:
    tools = [
        FakeTool(contract(id="core__a")),
        FakeTool(contract(id="core__b", capabilities=frozenset({"traces"}))),
        FakeTool(contract(id="core__c")),
        FakeTool(contract(id="core__d", requires_connection=True)),
    ]
    policy = ToolPolicy(
        {"investigate": ("core__*",), "recommend": ("core__a",)},
        sessions={"core__a": ("incident-*",)},
        channels=(("incident-*", ("core__b",)),),
        denied=("core__c",),
    )

    report = tool_report(
        tools, policy, fake_capabilities(traces=None), {"unknown": ToolHealth({"policy_denied": 3})}
    )

    assert status(report, "core__a") == "investigate, recommend: not called yet"
    assert status(report, "core__b") == "not offered: not set: [observe.traces]"
    assert status(report, "core__c") == "not offered: no toolset has it, or [policy] denies it"
    assert "[platform.connections]" in status(report, "core__d")
    assert "3 policy_denied" in status(report, "unknown")


def test_investigate_costs_less_than_every_tool_and_stays_small() -> None:
    policy = ToolPolicy({**TOOLSETS, "everything": ("core__*",)})

    costs = {each.name: each for each in toolset_costs(CORE, policy)}

    assert costs["investigate"].max_tokens < costs["all"].max_tokens
    assert costs["all"] == replace(costs["everything"], name="all")
    # An upper estimate at 2.4 bytes a token; a tool costs what two sentences of an answer cost.
    assert costs["investigate"].max_tokens <= 240 * costs["investigate"].tools


REPORT = tool_report(CORE, ToolPolicy(TOOLSETS), None, {}, notes=["p.yaml:1: bad"])


def test_the_api_reports_the_same_tools_as_the_command_line() -> None:
    told = Tools.model_validate(REPORT.as_json()).model_dump_json()
    read = report_from_json(told.encode())

    assert (list(read.tools), list(read.notes)) == (list(REPORT.tools), list(REPORT.notes))
