"""The one path: what a call passes, what each failure looks like, and that nothing escapes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from tests.fakes.capabilities import fake_capabilities
from tests.fakes.redactor import FakeRedactor
from tests.fakes.tools import ALL, INSTANT, EchoOutput, FakeTool, bench, contract
from tools.capabilities import CallContext, Capabilities
from tools.contract import PROPOSE_TOOL_ID, Effect, Timeouts
from tools.errors import CapabilityUnavailable, InvalidArguments, ToolErrorCode, UpstreamFailed
from tools.outside_json import left_out
from tools.policy import ToolPolicy
from tools.records import CallEnded, CallSlow, CallStarted
from tools.runner import OnRecord


def raising(error: Exception) -> FakeTool:
    def answer(_arguments: object) -> object:
        raise error

    return FakeTool(answer=answer)


def returning(value: object, **changes: object) -> FakeTool:
    return FakeTool(contract(**changes), answer=lambda _arguments: value)


async def test_a_call_starts_ends_and_is_recorded_under_one_id() -> None:
    b = bench([FakeTool()])
    outcome = await b.run('{"text":"hi","times":2}')
    assert orjson.loads(outcome.content) == {"text": "hihi"}
    assert outcome.summary == "echoed 4 characters"
    assert b.events == [
        CallStarted("call1", "core__echo", {"text": "hi", "times": 2}),
        CallEnded(outcome),
    ]
    assert b.records == [outcome.record]
    assert (outcome.record.ok, outcome.record.bytes) == (True, len(outcome.content))


async def _reads_on_a_thread() -> None:
    await asyncio.to_thread(left_out, 2)


async def _reads_in_a_task() -> None:
    await asyncio.create_task(_reads_on_a_thread())


@pytest.mark.parametrize("read", [_reads_on_a_thread, _reads_in_a_task])
async def test_a_result_states_how_many_entries_were_unreadable(
    read: Callable[[], Awaitable[None]],
) -> None:
    class Reader(FakeTool):
        async def execute(self, arguments: Any, call: CallContext, caps: Capabilities) -> Any:
            await read()
            return EchoOutput(text="rest")

    b = bench([Reader()])
    first, again = await b.run(), await b.run()
    assert orjson.loads(first.content) == {"text": "rest", "unread_entries": 2}
    assert orjson.loads(again.content)["unread_entries"] == 2
    assert first.summary == "echoed 4 characters, 2 entries unreadable"


def _leaving_one_out(_arguments: object) -> EchoOutput:
    left_out(1)
    return EchoOutput()


async def test_unreadable_entries_are_counted_per_call() -> None:
    gate = asyncio.Event()
    odd = FakeTool(contract(id="core__odd"), answer=_leaving_one_out)
    whole = FakeTool(contract(id="core__whole"), gate=gate)
    b = bench([odd, whole])
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(b.run(name="core__whole"))
        await whole.started.wait()
        outcome = await b.run(name="core__odd")
        gate.set()
    assert "unread_entries" in outcome.content
    assert "unread_entries" not in waiting.result().content


@pytest.mark.parametrize(
    "name", ["core__nothing", "Core__Echo", "CORE__ECHO", "echo", "", "core__echo ", "x" * 10_000]
)
async def test_a_name_that_is_not_exactly_a_tool_does_not_exist(name: str) -> None:
    tool = FakeTool()
    b = bench([tool])
    outcome = await b.run(name=name)
    assert outcome.record.error_code is ToolErrorCode.POLICY_DENIED
    assert "echo" not in outcome.content
    assert outcome.record.name == "unknown"
    assert tool.calls == []
    assert [type(event) for event in b.events] == [CallEnded]


async def test_a_hidden_tool_looks_like_one_that_does_not_exist() -> None:
    hidden = FakeTool(contract(id="core__hidden"))
    b = bench([FakeTool(), hidden], ToolPolicy(toolsets={"investigate": ("core__echo",)}))
    denied, unknown = await b.run(name="core__hidden"), await b.run(name="core__unheard_of")
    assert denied.content == unknown.content
    assert hidden.calls == []


async def test_a_purpose_without_a_toolset_has_no_tools() -> None:
    outcome = await bench([FakeTool()]).run(purpose="recommend")
    assert outcome.record.error_code is ToolErrorCode.POLICY_DENIED


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("{", ToolErrorCode.INVALID_JSON),
        ("not json", ToolErrorCode.INVALID_JSON),
        ('{"text": NaN}', ToolErrorCode.INVALID_JSON),
        ('{"text":"\ud800"}', ToolErrorCode.INVALID_JSON),
        ("[" * 50_000, ToolErrorCode.INVALID_JSON),
        ('{"text":' + "[" * 200 + "]" * 200 + "}", ToolErrorCode.VALIDATION),
        ("[]", ToolErrorCode.VALIDATION),
        ("null", ToolErrorCode.VALIDATION),
        ("", ToolErrorCode.VALIDATION),
        ('{"text":"a","extra":1}', ToolErrorCode.VALIDATION),
        ('{"times":1}', ToolErrorCode.VALIDATION),
        ('{"text":5}', ToolErrorCode.VALIDATION),
        ('{"text":"a","times":"many"}', ToolErrorCode.VALIDATION),
        ('{"text":"' + "a" * 300_000 + '"}', ToolErrorCode.VALIDATION),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_tool(
    arguments: str, code: ToolErrorCode
) -> None:
    tool = FakeTool()
    b = bench([tool])
    outcome = await b.run(arguments)
    assert outcome.record.error_code is code
    assert orjson.loads(outcome.content)["error"] == code.value
    assert (tool.calls, outcome.record.arguments) == ([], {})
    assert b.records == [outcome.record]


async def test_a_validation_error_names_the_path_and_not_the_value() -> None:
    outcome = await bench([FakeTool()]).run('{"text":["hunter2"],"oops":"hunter2","a b":1}')
    message = orjson.loads(outcome.content)["message"]
    assert "text: Input should be a valid string" in message
    assert "oops: not an argument (accepted: text, times)" in message
    assert "hunter2" not in message
    assert "a b" not in message


async def test_a_null_optional_argument_counts_as_absent() -> None:
    outcome = await bench([FakeTool()]).run('{"text":"x","times":null}')
    assert orjson.loads(outcome.content) == {"text": "x"}


async def test_the_result_is_only_what_the_allowlist_names() -> None:
    tool = returning(EchoOutput(text="shown", password="hidden"))
    outcome = await bench([tool]).run()
    assert orjson.loads(outcome.content) == {"text": "shown"}


async def test_secrets_are_masked_in_result_arguments_and_summary() -> None:
    tool = FakeTool()
    tool.summarise = lambda output, arguments: output.text  # type: ignore[method-assign]
    b = bench([tool])
    outcome = await b.run('{"text":"key SECRET-abc"}')
    assert "SECRET" not in repr((outcome, b.events))
    assert tool.calls[0][0].text == "key SECRET-abc"


async def test_a_failing_redactor_lets_nothing_of_the_result_out() -> None:
    tool = FakeTool()
    b = bench([tool], redactor=FakeRedactor(fails=True))
    outcome = await b.run('{"text":"private"}')
    assert outcome.record.error_code is ToolErrorCode.REDACTION_FAILED
    assert "private" not in repr((outcome, b.events))
    assert tool.calls == []


async def test_a_redactor_that_fails_on_the_result_lets_nothing_out() -> None:
    redactor = FakeRedactor()

    def answer(_arguments: object) -> object:
        redactor.fails = True
        return EchoOutput(text="private")

    b = bench([FakeTool(answer=answer)], redactor=redactor)
    outcome = await b.run()
    assert outcome.record.error_code is ToolErrorCode.REDACTION_FAILED
    assert "private" not in outcome.content + outcome.summary + outcome.record.message


async def test_a_redactor_that_breaks_the_json_lets_nothing_out() -> None:
    redactor = FakeRedactor()

    def answer(_arguments: object) -> object:
        redactor.breaks_json = True
        return EchoOutput(text="private")

    outcome = await bench([FakeTool(answer=answer)], redactor=redactor).run()
    assert outcome.record.error_code is ToolErrorCode.REDACTION_FAILED
    assert "private" not in outcome.content


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UpstreamFailed("no healthy hosts", 503), "upstream", "upstream: 503 no healthy hosts"),
        (UpstreamFailed("401 unauthorized", 401), "upstream", "upstream: 401 unauthorized"),
        (UpstreamFailed("reset by peer"), "upstream", "upstream: reset by peer"),
        (UpstreamFailed("", 502), "upstream", "upstream: 502"),
        (InvalidArguments("product: unknown"), "validation", "product: unknown"),
        (CapabilityUnavailable("Loki is off"), "unavailable", "Loki is off"),
        (ExceptionGroup("g", [UpstreamFailed("x", 500)]), "upstream", "upstream: 500 x"),
        (RuntimeError("a bug with /paths"), "execution", "internal error"),
        (TimeoutError("of its own"), "execution", "internal error"),
        (asyncio.CancelledError(), "execution", "internal error"),
    ],
)
async def test_each_failure_is_an_error_object_a_model_can_act_on(
    error: Exception, code: str, message: str
) -> None:
    outcome = await bench([raising(error)]).run()
    assert orjson.loads(outcome.content) == {"error": code, "message": message}
    assert outcome.record.error_code == code


async def test_a_bug_is_counted_and_logged_with_its_traceback_but_no_secret() -> None:
    b = bench([raising(RuntimeError("token SECRET-abc"))])
    with capture_logs() as logs:
        await b.run()
    assert b.bugs == ["core__echo"]
    assert "RuntimeError: token [redacted]" in logs[0]["trace"]
    assert "SECRET" not in repr(logs)


async def test_an_upstream_message_with_a_secret_passes_the_redactor() -> None:
    b = bench([raising(UpstreamFailed("bad token SECRET-abc", 403))])
    outcome = await b.run()
    assert "SECRET" not in repr((outcome, b.records))
    assert "[redacted]" in outcome.content


async def test_a_giant_error_message_is_not_passed_on() -> None:
    outcome = await bench([raising(UpstreamFailed("x" * 1_000_000, 500))]).run()
    assert len(outcome.content) < 200


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
async def test_a_value_that_is_not_strict_json_is_an_invalid_output(value: object) -> None:
    tool = returning(EchoOutput(value=value))
    outcome = await bench([tool]).run()
    assert outcome.record.error_code is ToolErrorCode.OUTPUT_INVALID


@pytest.mark.parametrize("value", [None, "text", 5, {"text": 5}, [1]])
async def test_an_output_of_another_shape_is_invalid(value: object) -> None:
    b = bench([returning(value)])
    outcome = await b.run()
    assert outcome.record.error_code is ToolErrorCode.OUTPUT_INVALID
    assert b.bugs == ["core__echo"]


async def test_fifty_megabytes_of_text_are_cut_with_a_marker() -> None:
    tool = returning(EchoOutput(text="é" * 25_000_000 + "SECRET-tail"))
    outcome = await bench([tool]).run()
    value = orjson.loads(outcome.content)
    assert len(outcome.content.encode()) <= 64 * 1024
    assert value["truncated"] is True
    assert value["text"].endswith("…[cut]")
    assert outcome.record.truncated


async def test_terminal_controls_and_invisible_text_are_stripped_from_results() -> None:
    hostile = "a\x1b[2Jb\x1b]8;;http://x\x07c\x00d\u202ee\u200bfg\U000e0041h\u2028i\ttab\nline"
    outcome = await bench([returning(EchoOutput(text=hostile))]).run()
    assert orjson.loads(outcome.content) == {"text": "abcdefghi\ttab\nline"}


async def test_a_call_over_its_deadline_ends_as_a_timeout() -> None:
    tool = FakeTool(contract(timeouts=INSTANT), gate=asyncio.Event())
    outcome = await bench([tool]).run()
    body = orjson.loads(outcome.content)
    assert body == {"error": "tool_timeout", "elapsed": "0.0s", "tool": "echo"}
    assert outcome.record.message == "timed out after 0.0s"


async def test_a_tool_that_turns_the_timeout_into_its_own_error_is_still_a_timeout() -> None:
    class Stubborn(FakeTool):
        async def execute(self, arguments: object, call: object, caps: object) -> object:
            try:
                return await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise UpstreamFailed("connection lost") from None

    outcome = await bench([Stubborn(contract(timeouts=INSTANT))]).run()
    assert outcome.record.error_code is ToolErrorCode.TOOL_TIMEOUT


@pytest.mark.parametrize("key", ["core__echo", "echo"])
async def test_a_configured_timeout_is_capped_at_the_ceiling(key: str) -> None:
    tool = FakeTool(contract(timeouts=INSTANT), gate=asyncio.Event())
    outcome = await bench([tool], timeouts={key: 3600.0}).run()
    assert outcome.record.error_code is ToolErrorCode.TOOL_TIMEOUT


async def test_a_configured_timeout_replaces_the_default() -> None:
    tool = FakeTool(contract(timeouts=Timeouts(300, 300)), gate=asyncio.Event())
    outcome = await bench([tool], timeouts={"echo": 0.001}).run()
    assert outcome.record.error_code is ToolErrorCode.TOOL_TIMEOUT


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_that_is_not_positive_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        bench([FakeTool()], timeouts={"echo": seconds})


async def test_a_slow_call_is_reported_once_while_it_runs() -> None:
    gate = asyncio.Event()
    b = bench([FakeTool(gate=gate)], slow_after_s=0)
    seen: list[object] = []

    def show(event: object) -> None:
        seen.append(type(event))
        if isinstance(event, CallSlow):
            gate.set()

    b.events = type("Sink", (), {"append": staticmethod(show)})()
    outcome = await b.run()
    assert outcome.record.ok
    assert seen == [CallStarted, CallSlow, CallEnded]


async def test_a_quick_call_is_never_reported_as_slow() -> None:
    b = bench([FakeTool()], slow_after_s=0.001)
    await b.run()
    await asyncio.sleep(0.005)
    assert [type(event) for event in b.events] == [CallStarted, CallEnded]


async def test_a_cancellation_propagates_and_leaves_a_record() -> None:
    tool = FakeTool(gate=asyncio.Event())
    b = bench([tool])
    task = asyncio.get_running_loop().create_task(b.run())
    await tool.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [record.error_code for record in b.records] == [ToolErrorCode.CANCELLED]
    assert [type(event) for event in b.events] == [CallStarted, CallEnded]


async def _hangs(record: object, ctx: object) -> None:
    await asyncio.Event().wait()


async def _is_gone(record: object, ctx: object) -> None:
    raise OSError("the database is closed")


@pytest.mark.parametrize("on_record", [_hangs, _is_gone])
async def test_a_cancellation_does_not_wait_for_a_record_and_is_not_a_bug(
    on_record: OnRecord,
) -> None:
    tool = FakeTool(gate=asyncio.Event())
    b = bench([tool], on_record=on_record)
    with capture_logs() as told:
        task = asyncio.get_running_loop().create_task(b.run())
        await tool.started.wait()
        task.cancel()
        async with asyncio.timeout(1):
            with pytest.raises(asyncio.CancelledError):
                await task
    assert b.bugs == []
    assert [line["event"] for line in told] == ["tool.cancelled_call_not_recorded"]


async def test_the_record_is_written_before_the_end_is_shown() -> None:
    order: list[str] = []

    async def record(record: object, ctx: object) -> None:
        await asyncio.sleep(0)
        order.append("recorded")

    b = bench([FakeTool()], on_record=record)
    b.events = type(
        "Sink", (), {"append": staticmethod(lambda e: order.append(type(e).__name__))}
    )()
    await b.run()
    assert order == ["CallStarted", "recorded", "CallEnded"]


async def test_a_result_that_cannot_be_recorded_is_withheld() -> None:
    async def broken(record: object, ctx: object) -> None:
        raise OSError("disk full")

    outcome = await bench([FakeTool()], on_record=broken).run('{"text":"finding"}')
    assert outcome.record.error_code is ToolErrorCode.UNAVAILABLE
    assert "finding" not in outcome.content


async def test_a_listener_that_raises_does_not_break_the_call() -> None:
    def broken(event: object) -> None:
        raise RuntimeError("surface gone")

    b = bench([FakeTool()])
    b.events = type("Sink", (), {"append": staticmethod(broken)})()
    assert (await b.run()).record.ok


async def test_a_summary_that_fails_costs_only_the_summary() -> None:
    tool = FakeTool()
    tool.summarise = lambda output, arguments: str(1 / 0)  # type: ignore[method-assign]
    b = bench([tool])
    outcome = await b.run()
    assert (outcome.record.ok, outcome.summary, b.bugs) == (True, "", ["core__echo"])


async def test_an_unauthorised_caller_is_refused_before_the_tool_runs() -> None:
    async def refuse(contract: object, ctx: object) -> str:
        return "only responders may ask here"

    tool = FakeTool()
    outcome = await bench([tool], authorise=refuse).run()
    assert outcome.record.error_code is ToolErrorCode.AUTHZ_DENIED
    assert "only responders" in outcome.content
    assert tool.calls == []


async def test_a_failing_authorisation_denies() -> None:
    async def broken(contract: object, ctx: object) -> None:
        raise OSError("directory down")

    tool = FakeTool()
    outcome = await bench([tool], authorise=broken).run()
    assert (outcome.record.error_code, tool.calls) == (ToolErrorCode.AUTHZ_DENIED, [])


async def test_the_tool_and_the_record_share_the_call_id() -> None:
    tool = FakeTool()
    outcome = await bench([tool]).run(tool_call_id="of another call")
    assert (tool.calls[0][1].tool_call_id, outcome.record.tool_call_id) == ("call1", "call1")


async def test_a_call_without_a_caller_is_denied() -> None:
    outcome = await bench([FakeTool()]).run(actor="")
    assert outcome.record.error_code is ToolErrorCode.AUTHZ_DENIED


async def test_a_tool_gets_only_connections_both_granted_and_requested() -> None:
    tool = FakeTool(contract(requires_connection=True))
    policy = ToolPolicy(ALL.toolsets, granted_connections=frozenset({"a", "b"}))
    await bench([tool], policy).run(connection_ids=frozenset({"b", "c"}))
    assert tool.calls[0][1].connection_ids == {"b"}


async def test_a_tool_that_needs_a_connection_is_denied_without_one() -> None:
    tool = FakeTool(contract(requires_connection=True))
    policy = ToolPolicy(ALL.toolsets, granted_connections=frozenset({"a"}))
    outcome = await bench([tool], policy).run(connection_ids=frozenset({"c"}))
    assert (outcome.record.error_code, tool.calls) == (ToolErrorCode.POLICY_DENIED, [])


async def test_an_unconfigured_capability_is_named() -> None:
    tool = FakeTool(contract(capabilities=frozenset({"logs"})))
    outcome = await bench([tool], caps=fake_capabilities(logs=None)).run()
    assert orjson.loads(outcome.content) == {
        "error": "unavailable",
        "message": "not configured: logs",
    }
    assert tool.calls == []


async def test_only_the_proposing_tool_can_hand_over_a_proposal_id() -> None:
    def answer(_arguments: object) -> object:
        return EchoOutput(text="x", proposal_id="p1")

    outcome = await bench([FakeTool(answer=answer)]).run()
    assert outcome.proposal_id is None


async def test_the_proposing_tool_hands_over_the_proposal_id_even_when_unrecorded() -> None:
    async def broken(record: object, ctx: object) -> None:
        raise OSError("disk full")

    proposing = contract(id=PROPOSE_TOOL_ID, effect=Effect.STATE_CHANGE)
    tool = returning(EchoOutput(text="x", proposal_id="p1"))
    tool.contract = proposing
    outcome = await bench([tool], on_record=broken).run(name=PROPOSE_TOOL_ID)
    assert outcome.proposal_id == "p1"
    assert not outcome.record.ok
