"""One turn is one trace, on any replicas, and a trace delays no turn."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
import structlog

from adapters.llm.messages import ErrorChunk, ErrorKind
from bot.chat.traced import TurnTraces
from bot.domain.session import Ask
from bot.ports.durability import Journal
from bot.ports.failures import StorageUnavailable
from bot.settings.model import Settings
from bot.telemetry import conventions as names
from bot.telemetry.spans import root_of, trace_of, turn_span_of
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.scripted_provider import ScriptedProvider, calls, text
from tests.fakes.spans import KeptSpans
from tests.fixtures_service import captured_log
from tests.fixtures_turn import ASK, PLACE, TurnBench, turn_bench

ECHO = ("call-1", "core__echo", '{"text": "hello"}')
SCRIPT = [calls(ECHO), text("The pool is full.")]
TURN = turn_span_of(ASK.turn_id)


async def answered(bench: TurnBench, spans: KeptSpans, journal: MemoryJournal) -> object:
    async with asyncio.timeout(10):
        return await TurnTraces(spans).answering(bench.turns.answer)(ASK, journal)


def below(spans: KeptSpans, parent: bytes) -> list[str]:
    return [span.name for span in spans.kept if span.parent_id == parent]


async def test_a_turn_is_one_connected_trace_from_its_message_to_its_last_edit() -> None:
    spans = KeptSpans()
    with TurnTraces(spans).accepting(ASK):
        pass

    await answered(turn_bench(SCRIPT), spans, MemoryJournal())

    assert {span.trace_id for span in spans.kept} == {trace_of(ASK.turn_id)}
    assert below(spans, b"") == ["kortex.accept"]
    assert below(spans, root_of(ASK.turn_id)) == ["invoke_agent kortex"]
    assert below(spans, TURN) == [
        "kortex.step.open",
        "kortex.step.placeholder",
        "chat scripted-1",
        "execute_tool core__echo",
        "chat scripted-1",
        "kortex.step.keep",
        "kortex.step.deliver",
    ]
    assert len({span.span_id for span in spans.kept}) == len(spans.kept)
    assert not [span for span in spans.kept if span.content]


async def test_a_turns_question_calls_and_cost_are_in_its_spans() -> None:
    spans = KeptSpans()
    await answered(turn_bench(SCRIPT), spans, MemoryJournal())
    chat, tool, turn = (
        spans.named(name)[0].attributes
        for name in ("chat scripted-1", "execute_tool core__echo", "invoke_agent kortex")
    )

    assert (chat[names.OPERATION], chat[names.PROVIDER]) == ("chat", "scripted")
    assert (chat[names.INPUT_TOKENS], chat[names.OUTPUT_TOKENS]) == (100, 20)
    assert chat[names.FINISH_REASONS] == ("tool_use",)
    assert (tool[names.TOOL], tool[names.TOOL_CALL]) == ("core__echo", "call-1")
    assert (turn[names.END], turn[names.ROUNDS], turn[names.INPUT_TOKENS]) == ("answered", 2, 200)
    assert {a[names.CONVERSATION] for a in (chat, tool, turn)} == {f"session:{PLACE.key}"}


@pytest.mark.parametrize("tick", range(12))
async def test_a_killed_turn_continues_in_the_same_trace_on_another_replica(tick: int) -> None:
    bench, journal = turn_bench(SCRIPT), MemoryJournal(Fuse(tick))
    first, second = KeptSpans(), KeptSpans()
    with suppress(Crash):
        await answered(bench, first, journal)
    had_begun = len(journal.record) > 0
    await answered(bench, second, journal.resumed())
    (turn,) = [s for s in (*first.kept, *second.kept) if s.span_id == TURN]

    assert first.named("invoke_agent kortex") == []
    assert {span.trace_id for span in (*first.kept, *second.kept)} == {trace_of(ASK.turn_id)}
    assert below(second, TURN)[-1] == "kortex.step.deliver"
    assert turn.attributes[names.RESUMED] is had_begun


async def test_a_resumed_turns_span_starts_at_its_first_beginning() -> None:
    bench, journal, spans = turn_bench(SCRIPT), MemoryJournal(), KeptSpans()
    await answered(bench, KeptSpans(), journal)
    journal.record[:] = [
        (
            name,
            json.dumps(
                _begun_in_2001(json.loads(value)) if name == "open" else json.loads(value)
            ).encode(),
        )
        for name, value in journal.record
    ]

    await answered(bench, spans, journal.resumed())

    (turn,) = [span for span in spans.kept if span.span_id == TURN]
    assert turn.started_ns == 1_000_000_000_000_000_000


def _begun_in_2001(kept: list[Any]) -> list[Any]:
    return [*kept[:2], "2001-09-09T01:46:40+00:00", *kept[3:]]


async def test_each_model_request_is_a_span_including_failed_ones() -> None:
    down = ScriptedProvider([[ErrorChunk(ErrorKind.AUTH, "401")]], name="first")
    bench, spans = turn_bench(providers=[down, ScriptedProvider([text("So.")])]), KeptSpans()

    await answered(bench, spans, MemoryJournal())

    (failed,) = spans.named("chat first")
    assert (failed.error, failed.attributes[names.PROVIDER]) == ("auth", "first")
    assert [span.error for span in spans.named("chat scripted-1")] == [""]


async def test_a_failed_call_has_its_kind_of_failure() -> None:
    spans = KeptSpans()
    await answered(
        turn_bench([calls(("c", "core__nothing", "{}")), text("No.")]), spans, MemoryJournal()
    )

    assert [span.error for span in spans.named("execute_tool unknown")] == ["policy_denied"]


async def test_content_is_in_spans_only_when_it_is_enabled() -> None:
    spans = KeptSpans(content=True)
    await answered(turn_bench(SCRIPT), spans, MemoryJournal())
    chat, tool = spans.named("chat scripted-1")[1], spans.named("execute_tool core__echo")[0]

    assert "why?" in chat.content[names.INPUT_MESSAGES]
    assert "The pool is full." in chat.content[names.OUTPUT_MESSAGES]
    assert tool.content[names.TOOL_ARGUMENTS] == '{"text":"hello"}'
    assert "hello" in tool.content[names.TOOL_RESULT]
    assert (
        "The pool is full." in spans.named("invoke_agent kortex")[0].content[names.OUTPUT_MESSAGES]
    )


@pytest.mark.parametrize(
    "arguments", ['{"text": "\\ud800"}', '{"text": "x", "times": 1' + "0" * 39 + "}", "[" * 1_500]
)
async def test_no_model_output_breaks_a_traced_turn(arguments: str) -> None:
    spans = KeptSpans(content=True)
    script = [calls(("\ud800", "core__echo", arguments)), text("Well \ud800.")]
    plain = await turn_bench(script).answer()

    assert await answered(turn_bench(script), spans, MemoryJournal()) == plain
    assert spans.named("invoke_agent kortex")


async def test_a_handed_over_turn_is_reported_by_the_replica_that_ends_it() -> None:
    provider = ScriptedProvider([text("Never.")], hold=asyncio.Event())
    bench, spans = turn_bench(providers=[provider]), KeptSpans()
    task = asyncio.create_task(answered(bench, spans, MemoryJournal()))
    await provider.holding.wait()
    task.cancel()
    await asyncio.wait([task])

    assert [span.error for span in spans.named("chat scripted")] == ["CancelledError"]
    assert spans.named("invoke_agent kortex") == []


async def test_a_turn_that_breaks_off_reports_its_error() -> None:
    async def body(_: Ask, __: Journal) -> None:
        raise StorageUnavailable("gone")

    spans = KeptSpans()
    with pytest.raises(StorageUnavailable):
        await TurnTraces(spans).answering(body)(ASK, MemoryJournal())

    assert [span.error for span in spans.named("invoke_agent kortex")] == ["StorageUnavailable"]


async def test_an_abandoned_turn_ends_its_trace_as_lost() -> None:
    bench, spans = turn_bench(SCRIPT), KeptSpans()
    await TurnTraces(spans).ending(bench.turns.end_lost)(ASK, False, MemoryJournal())

    assert [span.error for span in spans.named("invoke_agent kortex")] == ["lost"]
    assert below(spans, TURN)[-1] == "kortex.step.deliver"


async def _within_a_turn() -> None:
    await TurnTraces().answering(_one_line)(ASK, MemoryJournal())


async def _one_line(_: Ask, __: Journal) -> None:
    structlog.get_logger("kortex").info("within")


def test_the_logs_of_a_turn_name_its_trace_session_and_turn() -> None:
    with captured_log(Settings()) as written:
        asyncio.run(_within_a_turn())
        structlog.get_logger("kortex").info("outside")
    inside, outside = (json.loads(line) for line in written.getvalue().splitlines())

    assert inside["trace"] == trace_of(ASK.turn_id).hex()
    assert (inside["session"], inside["turn"]) == (f"session:{PLACE.key}", ASK.turn_id)
    assert not {"trace", "session", "turn"} & outside.keys()


def test_an_unaccepted_message_has_its_reason() -> None:
    spans = KeptSpans()
    with suppress(OSError), TurnTraces(spans).accepting(ASK):
        raise OSError("disk")

    (root,) = spans.kept
    assert (root.error, root.span_id) == ("OSError", root_of(ASK.turn_id))


def test_the_ids_of_a_trace_come_from_the_turn() -> None:
    assert trace_of("turn:T1:C1:1.2").hex() == "4b2ed7afddb689aa260a484bb72fe9e5"
    assert len({trace_of(f"turn:{n}") for n in range(100)}) == 100
    assert len({root_of("t"), turn_span_of("t"), trace_of("t")[:8]}) == 3
