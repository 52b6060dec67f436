"""Tool calls of a turn: through the runner of the channel's backends, stoppable, written down."""

import asyncio

from adapters.llm.messages import ToolCall
from bot.chat.stopping import Signal
from bot.chat.tool_calls import Toolbox, TurnTools, record_calls
from bot.domain.audit import AuditKind
from bot.ports.failures import StorageUnavailable
from bot.telemetry.metrics import Metrics
from tests.fakes.capabilities import FakeClock, call_context
from tests.fakes.stores import Memory, MemoryAudit
from tests.fakes.tools import Bench, FakeTool, bench
from tests.fixtures_turn import Outage
from tools.capabilities import CallContext
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy
from tools.records import CallEnded, CallEvent

ECHO = ToolCall("c1", "core__echo", '{"text":"hi"}')


def tools(box: Bench) -> TurnTools:
    return TurnTools(lambda _: Toolbox(box.catalog, box.runner), FakeClock())


async def test_a_call_runs_under_its_own_id() -> None:
    tool = FakeTool()

    outcome = await tools(bench([tool])).run(ECHO, call_context(), lambda _: None, Signal())

    assert (outcome.record.ok, outcome.record.tool_call_id) == (True, "c1")
    assert [context.tool_call_id for _, context in tool.calls] == ["c1"]


async def test_a_channel_uses_the_tools_of_its_own_backends() -> None:
    here, there = FakeTool(), FakeTool()
    boxes = {"here": bench([here]), "there": bench([there])}

    def choose(call: CallContext) -> Toolbox:
        return Toolbox(boxes[call.channel].catalog, boxes[call.channel].runner)

    await TurnTools(choose, FakeClock()).run(
        ECHO, call_context(channel="there"), lambda _: None, Signal()
    )

    assert (len(here.calls), len(there.calls)) == (0, 1)


async def test_only_what_the_policy_allows_is_shown() -> None:
    shown = tools(bench([FakeTool()])).visible(call_context())
    hidden = tools(bench([FakeTool()], policy=ToolPolicy(toolsets={}))).visible(call_context())

    assert ([d.name for d in shown], list(hidden)) == (["core__echo"], [])


async def test_a_stop_makes_the_call_a_cancelled_result() -> None:
    tool, stop = FakeTool(gate=asyncio.Event()), Signal()
    events: list[CallEvent] = []
    box = bench([tool])
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(tools(box).run(ECHO, call_context(), events.append, stop))
        await tool.started.wait()
        stop.set()

    record = running.result().record
    assert (record.ok, record.error_code) == (False, ToolErrorCode.CANCELLED)
    assert record.tool_call_id == "c1"
    assert isinstance(events[-1], CallEnded)
    assert [r.error_code for r in box.records] == [ToolErrorCode.CANCELLED]


async def test_every_call_is_audited_before_its_result_is_seen() -> None:
    memory, metrics = Memory(), Metrics()
    box = bench([FakeTool()], on_record=record_calls(MemoryAudit(memory), metrics))
    rows_at_end: list[int] = []

    await tools(box).run(
        ECHO,
        call_context(),
        lambda e: rows_at_end.append(len(memory.audit_log)) if isinstance(e, CallEnded) else None,
        Signal(),
    )

    (row,) = memory.audit_log
    assert rows_at_end == [1]
    assert (row.kind, row.actor, row.session_id) == (AuditKind.TOOL_CALL, "U1", "s1")
    assert (row.body["tool"], row.body["arguments"], row.body["ok"]) == (
        "core__echo",
        {"text": "hi"},
        True,
    )
    assert (
        metrics.registry.get_sample_value(
            "kortex_tool_calls_total", {"tool": "core__echo", "outcome": "ok"}
        )
        == 1
    )


async def test_a_result_that_cannot_be_audited_is_withheld() -> None:
    audit = Outage(MemoryAudit(Memory()), {"append_with_step"}, StorageUnavailable("gone"))
    box = bench([FakeTool()], on_record=record_calls(audit, Metrics()))

    outcome = await tools(box).run(ECHO, call_context(), lambda _: None, Signal())

    assert outcome.record.error_code is ToolErrorCode.UNAVAILABLE
    assert '"hi"' not in outcome.content
