"""A model may call anything: only the listed tools run, and nothing acts.

One bot serves all tests of this module. The question names the case, the scripted model obeys it.
"""

import json
from typing import Any

import pytest

from bot.demo.workspace.seeds import RESPONDER
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import PLANE_TOKEN, shared_stage
from tests.stage import CONFIRM, Stage, question_of, results, shown

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROPOSE = "core__propose_action"
GOOD: dict[str, Any] = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}
NAMES = {
    "an action": "rollback-deploy",
    "an action in our namespace": "core__rollback_deploy",
    "a later version": "core__propose_action_v2",
    "another case": "Core__Propose_Action",
    "a Cyrillic o": "c\u043ere__propose_action",
    "without its namespace": "propose_action",
    "a trailing space": "core__propose_action ",
    "deciding": "core__decide",
    "dispatching": "bot.actions.dispatch",
    "a plugin": "plugin__rollback",
    "an MCP tool": "mcp__evil__rollback",
    "writing to the cluster": "core__kubectl_delete",
    "http": "http_post",
    "nothing": "",
    "a path": "../../core__propose_action",
}
PROPOSALS = {
    "an unknown action": {**GOOD, "action": "drop-database"},
    "an action in another case": {**GOOD, "action": "Rollback-Deploy"},
    "a product that is not the action's": {**GOOD, "product": "billing"},
    "every product": {**GOOD, "product": "*"},
    "a product that climbs": {**GOOD, "product": "../../admin"},
    "an unknown parameter": {**GOOD, "params": {"command": "rm -rf /"}},
    "a parameter of another type": {**GOOD, "params": {"version": {"$ne": 1}}},
    "parameters too long to show": {**GOOD, "params": {"note": "x" * 5000}},
    "a wider blast radius": {**GOOD, "blast_radius": "whole cluster"},
    "a decision of its own": {**GOOD, "confirmed_by": RESPONDER},
    "a state of its own": {**GOOD, "state": "confirmed"},
    "an endpoint of its own": {**GOOD, "endpoint": "http://evil.test"},
    "no reason": {**GOOD, "rationale": ""},
    "a secret": {**GOOD, "params": {"note": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}},
    "a configured secret": {**GOOD, "params": {"note": PLANE_TOKEN}},
}
VERSIONS = ("v1", "v2", "v3", "v4", "v5")
SETTINGS = {
    "channels": [{"match": "*", "products": ["checkout", "billing"], "confirm": ["responder"]}]
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Make the call that the question names, then claim that it is done."""
    kind, _, name = question_of(request).partition(": ")
    if results(request):
        return Round(text=("Done. I rolled it back.",))
    if kind == "call":
        return Round(calls=(Call(NAMES[name], GOOD),))
    good = {**GOOD, "params": {"version": name}} if name in VERSIONS else GOOD
    return Round(calls=(Call(PROPOSE, PROPOSALS.get(name, good)),))


def proposals(stage: Stage) -> int:
    return int(stage.query("SELECT count(*) FROM proposals")[0][0])


@pytest.mark.parametrize("name", NAMES)
async def test_a_tool_that_is_not_listed_does_not_exist(shared_stage: Stage, name: str) -> None:
    before = proposals(shared_stage)

    user = shared_stage.newcomer()
    asked = await shared_stage.ask(f"@kortex call: {name}", user)
    await shared_stage.answer(asked)
    listed = await shared_stage.list_results(user, shared_stage.parts(asked)[-1])

    (result,) = results(shared_stage.models.requests[-1])
    assert "no such tool here" in result
    assert "policy_denied" in result
    assert "no such tool here" in str(listed["blocks"])
    assert proposals(shared_stage) == before
    assert shared_stage.effects == 0


@pytest.mark.parametrize("name", PROPOSALS)
async def test_an_undeclared_proposal_is_not_created(shared_stage: Stage, name: str) -> None:
    before = proposals(shared_stage)
    asked = await shared_stage.ask(f"@kortex propose: {name}", shared_stage.newcomer())

    await shared_stage.answer(asked)

    (result,) = results(shared_stage.models.requests[-1])
    assert "validation" in result
    assert proposals(shared_stage) == before
    assert shared_stage.cards(asked) == []
    assert shared_stage.effects == 0


async def test_a_models_tools_only_read_or_propose(shared_stage: Stage) -> None:
    await shared_stage.answered("@kortex call: nothing", shared_stage.newcomer())

    listed = {tool["function"]["name"] for tool in shared_stage.models.bodies[-1]["tools"]}
    assert listed == {
        "core__compare_to_baseline",
        "core__error_patterns",
        "core__find_metrics",
        "core__get_admin_info",
        "core__get_current_time",
        "core__get_incident_history",
        "core__get_logs",
        "core__get_metrics",
        "core__kubectl_describe",
        "core__kubectl_events",
        "core__kubectl_get",
        "core__kubectl_logs",
        "core__get_recent_deploys",
        "core__get_traces",
        "core__query_metrics",
        "core__report_findings",
        "core__search_patterns",
        "core__search_traces",
        "core__sweep_cluster",
        "core__sweep_metrics",
        "core__sweep_traces",
        PROPOSE,
    }


async def test_the_models_claims_change_neither_card_nor_row(shared_stage: Stage) -> None:
    await shared_stage.close_open()
    asked = await shared_stage.ask("@kortex propose: a good one", shared_stage.newcomer())

    await shared_stage.answer(asked)
    card = await shared_stage.card(asked)

    assert card.action_ids == ("proposal:raw", CONFIRM, "proposal:edit", "proposal:reject")
    assert "Succeeded" not in shown(card)
    assert "succeeded" not in shown(card)
    row = "SELECT state, outcome FROM proposals WHERE card_ts = ?"
    assert shared_stage.query(row, card.ts) == [("pending", "")]
    assert shared_stage.effects == 0


async def test_a_thread_holds_at_most_three_open_proposals(shared_stage: Stage) -> None:
    await shared_stage.close_open()
    asked = await shared_stage.ask("@kortex propose: v1", shared_stage.newcomer())
    await shared_stage.answer(asked)
    for number in range(2, 6):
        await shared_stage.answered(f"propose: v{number}", thread=asked.thread)

    assert len(shared_stage.cards(asked)) == 3
    assert "proposals are open here already" in results(shared_stage.models.requests[-1])[0]


async def test_a_call_is_audited_before_the_model_reads_its_result(
    shared_stage: Stage,
) -> None:
    await shared_stage.answered("@kortex call: an action", shared_stage.newcomer())

    rows = shared_stage.query("SELECT body FROM audit WHERE kind = 'tool.call' ORDER BY seq")
    last = json.loads(rows[-1][0])
    assert last["tool"] == "unknown"
    assert last["error"] == "policy_denied"
