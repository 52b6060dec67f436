"""One turn, end to end in memory: however it ends, people see one end and the record is kept."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog.testing

from adapters.llm.messages import ErrorChunk, ErrorKind, Role, StreamChunk, TextChunk, Usage
from adapters.llm.written_calls import CALLS_WRITTEN
from bot.chat.turn_result import CUT_SHORT, NOT_KEPT, NOTHING_STARTED
from bot.domain.audit import AuditKind
from bot.domain.budget import BudgetLimits
from bot.domain.claims import ClaimState
from bot.domain.ids import Person, Place, TeamId, UserId
from bot.domain.session import TurnState
from bot.domain.turn_events import RoundReplaced, TextDelta, TurnEnd
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.recording_surface import RecordingSurface
from tests.fakes.redactor import FakeRedactor
from tests.fakes.scripted_provider import PAID, ScriptedProvider, calls, text
from tests.fakes.tools import FakeTool
from tests.fixtures_turn import ASK, LATER, turn_bench
from tools.policy import ToolPolicy
from tools.redactor import Redacted


def shown_text(surface: RecordingSurface) -> list[str]:
    return [e.text for s in surface.streams for e in s.events if isinstance(e, TextDelta)]


ECHO = ("c1", "core__echo", '{"text":"41.5 ms"}')
LATER_AT = datetime(2026, 4, 7, 15, tzinfo=UTC)
Logged = list[MutableMapping[str, Any]]


@pytest.fixture(autouse=True)
def logged() -> Iterator[Logged]:
    """What the turn logs, instead of a console."""
    with structlog.testing.capture_logs() as entries:
        yield entries


async def test_an_answer_is_shown_once_stored_and_counted() -> None:
    bench = turn_bench([calls(ECHO, say="Looking."), text("It takes 41.5 ms [E1].")])

    final = await bench.answer()

    assert final is not None
    assert bench.surface.finals == [final]
    assert (final.end, final.rounds) == (TurnEnd.ANSWERED, 2)
    assert [c.state for c in final.claims] == [ClaimState.UNCHECKED]
    assert final.text == "Looking.\n\nIt takes 41.5 ms [E1]."
    assert bench.state() is TurnState.ANSWERED
    assert bench.metrics.registry.get_sample_value("kortex_turns_total", {"end": "answered"}) == 1
    assert bench.memory.kinds() == [
        AuditKind.TURN_STARTED,
        AuditKind.MODEL_CALL,
        AuditKind.MODEL_CALL,
        AuditKind.TURN_ENDED,
    ]


async def test_a_final_answer_is_redacted_as_a_whole() -> None:
    final = await turn_bench([text("it was SEC", "RET-abc")]).answer()

    assert final is not None
    assert final.text == "it was [redacted]"


async def test_a_failing_redactor_sends_and_stores_nothing_and_says_so() -> None:
    provider = ScriptedProvider([text("never")])
    bench = turn_bench(providers=[provider], redactor=FakeRedactor(fails=True))

    final = await bench.answer()

    assert final is not None
    assert bench.surface.finals == [final]
    assert "internal error" in final.notices[0]
    assert provider.requests == []
    assert bench.store.turns == {}
    assert {a.text for a in bench.surface.asks} == {""}


async def test_a_model_learns_the_author_of_each_question() -> None:
    provider = ScriptedProvider([text("ok")])
    names = {"U1": "Mira Okafor"}

    async def people(_: Place, users: Iterable[str]) -> Mapping[str, str]:
        return {user: names.get(user, user) for user in users}

    bench = turn_bench(providers=[provider], people=people)
    await bench.answer()

    other = Person(TeamId("T1"), UserId("U7"))
    await bench.answer(replace(LATER, asker=other, text=Redacted("it isn't the database")))

    told = [m.told for m in provider.requests[-1].messages if m.role is Role.USER]
    assert [t.splitlines()[2] for t in told] == ["- Said by Mira Okafor.", "- Said by U7."]


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("Asia/Kolkata", "The asker's time zone is Asia/Kolkata: read clock times in it"),
        ("", "The asker's time zone is not known: take clock times as UTC, and say so."),
    ],
)
async def test_a_model_learns_the_askers_time_zone(zone: str, told: str) -> None:
    provider = ScriptedProvider([text("ok")])
    await turn_bench(providers=[provider], zone=zone).answer()

    assert told in provider.requests[-1].messages[-1].told


async def test_words_of_the_thread_may_be_repeated_without_evidence() -> None:
    bench = turn_bench([text("ok"), calls(ECHO), text("You failed over at 14:02.")])
    await bench.answer(replace(ASK, text=Redacted("we failed over at 14:02")))

    final = await bench.answer(LATER)

    assert final is not None
    assert final.text == "You failed over at 14:02."


async def test_an_unsupported_figure_is_marked_in_place() -> None:
    final = await turn_bench([calls(ECHO), text("It takes 97.3 ms [E1].")]).answer()

    assert final is not None
    assert final.text == "It takes 97.3 ms [E1]. (⚠ not in E1: 97.3 ms)"


async def test_a_written_call_runs_like_any_other_and_is_not_an_answer() -> None:
    written = '```json\n{"name": "core__echo", "arguments": {"text": "41.5 ms"}}\n```'
    tool = FakeTool()
    bench = turn_bench(
        [text("I look.\n\n", *written), text("It takes 41.5 ms [E1].")], tools=[tool]
    )

    final = await bench.answer()

    assert final is not None
    assert final.text == "I look.\n\nIt takes 41.5 ms [E1]."
    assert [(o.record.name, o.record.ok) for o in final.outcomes] == [("core__echo", True)]
    assert [context.actor for _, context in tool.calls] == ["U1"]
    assert CALLS_WRITTEN in final.notices
    assert "core__echo" not in "".join(shown_text(bench.surface))


async def test_a_written_call_is_subject_to_the_policy() -> None:
    written = '{"name": "core__echo", "arguments": {"text": "x"}}'
    tool = FakeTool()
    policy = ToolPolicy(toolsets={"investigate": ("core__other",)})
    bench = turn_bench([text(written), text("done")], tools=[tool], policy=policy)

    final = await bench.answer()

    assert final is not None
    assert (tool.calls, final.outcomes) == ([], ())


async def test_a_written_call_next_to_a_real_one_is_withheld() -> None:
    written = '{"name": "core__echo", "arguments": {"text": "x"}}'
    final = await turn_bench([calls(ECHO, say=written), text("done")]).answer()

    assert final is not None
    assert len(final.outcomes) == 1
    assert final.text == "done"


async def test_an_answer_that_is_only_an_unknown_call_goes_to_the_next_provider() -> None:
    written = '<tool_call>{"name": "core__nothing", "arguments": {"text": "x"}}</tool_call>'
    providers = [ScriptedProvider([text(written)]), ScriptedProvider([text("done")], name="b")]
    final = await turn_bench(providers=providers).answer()

    assert final is not None
    assert (len(final.outcomes), final.text) == (0, "done")


@pytest.mark.parametrize(
    "pieces",
    [
        ("<think>\nIt may be the pool.\n</think>\n\n", "It takes 41.5 ms [E1]."),
        ("It may be ", "the pool.\n", "</think>\n\n", "It takes 41.5 ms [E1]."),
        ("It may be the pool: ", '{"name": "core__echo"', "\n</think>", "\nIt takes 41.5 ms [E1]."),
    ],
)
async def test_a_models_thought_is_not_in_its_answer(pieces: tuple[str, ...]) -> None:
    bench = turn_bench([calls(ECHO), text(*pieces)], tools=[FakeTool()])

    final = await bench.answer()

    assert final is not None
    assert final.text == "It takes 41.5 ms [E1]."


async def test_a_thought_shown_before_its_end_is_removed() -> None:
    bench = turn_bench([calls(ECHO), text("It may be.\n", "</think>\n", "It takes 41.5 ms [E1].")])

    await bench.answer()

    events = bench.surface.streams[-1].events
    assert events.index(RoundReplaced(2)) > events.index(TextDelta("It may be.\n"))


async def test_a_deleted_place_ends_the_turn_silently_and_closes_its_row() -> None:
    provider = ScriptedProvider([text("never")])
    surface = RecordingSurface(open_failures=[SurfaceGone("channel archived")])
    bench = turn_bench(providers=[provider], surface=surface)

    assert await bench.answer() is None

    assert provider.requests == []
    assert bench.state() is TurnState.FAILED


async def test_an_undeliverable_answer_is_still_stored() -> None:
    surface = RecordingSurface(finish_failure=SurfaceGone("message deleted"))
    bench = turn_bench([text("all is well")], surface=surface)

    final = await bench.answer()

    assert final is not None
    assert final.text == "all is well"
    assert bench.state() is TurnState.ANSWERED
    assert [s.closed for s in surface.streams] == [1]


@pytest.mark.parametrize("method", ["begin_turn", "set_answer", "history"])
async def test_without_a_database_people_learn_that_nothing_started(method: str) -> None:
    provider = ScriptedProvider([text("first"), text("never")])
    bench = turn_bench(providers=[provider])
    await bench.answer()
    bench.sessions.broken = {method, "finish_turn"}

    with pytest.raises(StorageUnavailable):
        await bench.answer(LATER)

    assert [f.notices[0] for f in bench.surface.finals[1:]] == [NOTHING_STARTED]
    assert len(provider.requests) == 1


async def test_a_database_lost_during_the_turn_ends_the_answer_with_its_findings() -> None:
    bench = turn_bench([calls(ECHO, say="Looking."), text("never")], tools=[FakeTool()])
    journal = _LosesTheDatabase(after="tool:1:core__echo")

    final = await bench.answer(journal=journal)

    assert final is not None
    assert (final.end, final.text, final.notices) == (TurnEnd.FAILED, "Looking.", (CUT_SHORT,))
    assert len(final.evidence) == 1
    assert bench.state() is TurnState.FAILED


async def test_an_answer_that_could_not_be_stored_is_shown_with_a_notice() -> None:
    bench = turn_bench([text("all is well")])
    bench.sessions.broken = {"finish_turn"}

    with pytest.raises(StorageUnavailable):
        await bench.answer()

    (final,) = bench.surface.finals
    assert (final.text, final.notices[-1]) == ("all is well", NOT_KEPT)
    assert not final.is_kept


async def test_what_was_said_before_the_last_look_is_narration_with_its_marks() -> None:
    looking = calls(ECHO, say="42 % fail. Let me look.")
    items = "\n".join(f"- service-{n} runs" for n in range(9))
    bench = turn_bench([looking, text(f"The pool is full.\n\n{items}")])

    final = await bench.answer()

    assert final is not None
    assert final.text.startswith(f"{final.narration}The pool is full.")
    assert "42 % fail. (⚠ " in final.narration
    assert final.is_kept
    assert (await bench.sessions.answer(ASK.turn_id)).startswith(final.text)


async def test_a_bug_before_the_question_is_stored_is_reported_too(logged: Logged) -> None:
    async def broken(_: object, _channel: object, _question: object) -> list[str]:
        raise ZeroDivisionError("a bug with details")

    final = await turn_bench([text("never")], notes=broken).answer()

    assert final is not None
    (entry,) = [e for e in logged if e["event"] == "turn.failed"]
    assert entry["reference"] in final.notices[0]


async def test_a_bug_gives_people_a_reference_and_operators_the_traceback(logged: Logged) -> None:
    bench = turn_bench([text("first"), text("never")])
    await bench.answer()
    bench.sessions.broken = {"history"}
    bench.sessions.error = ZeroDivisionError("a bug with details")

    final = await bench.answer(LATER)

    assert final is not None
    assert bench.surface.finals[1:] == [final]
    (entry,) = [e for e in logged if e["event"] == "turn.failed"]
    assert isinstance(entry["exc_info"], ZeroDivisionError)
    assert entry["reference"] in final.notices[0]
    assert "details" not in final.notices[0]
    assert bench.state(LATER) is TurnState.FAILED
    assert bench.metrics.registry.get_sample_value("kortex_turns_total", {"end": "failed"}) == 1


async def test_a_bug_in_a_later_round_keeps_the_shown_text_and_evidence() -> None:
    class Breaks(ScriptedProvider):
        def stream(self, request):  # type: ignore[no-untyped-def]
            assert len(self.requests) < 1, "a bug"
            return super().stream(request)

    bench = turn_bench(providers=[Breaks([calls(ECHO, say="Looking.")])])

    final = await bench.answer()

    assert final is not None
    assert (final.end, final.text, len(final.evidence)) == (TurnEnd.FAILED, "Looking.", 1)
    assert bench.state() is TurnState.FAILED


async def test_a_question_without_a_placeholder_is_answered_and_shown_later() -> None:
    refusal = SurfaceFailed("invalid_auth", retryable=False)
    bench = turn_bench([text("found")], surface=RecordingSurface(open_failures=[refusal]))
    journal = MemoryJournal()

    final = await bench.answer(journal=journal)

    assert journal.record[-1][0] == "deliver"  # with the message that it posted
    assert final is not None
    assert (final.end, bench.state()) == (TurnEnd.ANSWERED, TurnState.ANSWERED)
    assert [shown.text for shown in bench.surface.finals] == ["found"]
    assert len(bench.surface.placeholders) == 1


async def test_an_end_that_cannot_be_shown_is_stored_and_the_turn_is_over() -> None:
    refusal = SurfaceFailed("invalid_auth", retryable=False)
    bench = turn_bench([text("found")], surface=RecordingSurface(finish_failure=refusal))

    final = await bench.answer()

    assert final is not None
    assert bench.state() is TurnState.ANSWERED
    ((_, held, _),) = bench.undelivered.rows.values()
    assert held == final


async def test_a_cancelled_turn_stays_open_for_its_successor() -> None:
    provider = ScriptedProvider([text("so far")], hold=asyncio.Event())
    bench = turn_bench(providers=[provider])

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(bench.answer())
        await provider.holding.wait()
        running.cancel()

    assert running.cancelled()
    assert bench.surface.finals == []
    assert bench.state() is TurnState.RUNNING
    assert [s.closed for s in bench.surface.streams] == [1]


async def test_a_spent_budget_ends_the_turn_without_a_free_provider() -> None:
    # A round holds some 25,000 micro-dollars; this one then costs 30,150.
    paid = ScriptedProvider([text("dear", usage=Usage(10_000, 0, 0, 10))], price=PAID)
    bench = turn_bench(providers=[paid], limits=BudgetLimits(daily_usd_micros=40_000))
    first = await bench.answer()

    final = await bench.answer(LATER)

    assert first is not None
    assert final is not None
    assert (first.end, final.end) == (TurnEnd.ANSWERED, TurnEnd.BUDGET)
    assert "$0.0301 of today's budget ($0.0400) is spent" in " ".join(final.notices)
    assert len(paid.requests) == 1
    assert AuditKind.BUDGET_REFUSED in bench.memory.kinds()
    assert bench.state(LATER) is TurnState.FAILED


async def test_a_stop_keeps_the_text_and_ends_the_turn() -> None:
    provider = ScriptedProvider([text("so far")], hold=asyncio.Event())
    bench = turn_bench(providers=[provider])

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(bench.answer())
        await provider.holding.wait()
        await bench.stops.request(ASK.turn_id, ASK.asker.user)

    final = running.result()
    assert final is not None
    assert (final.end, final.text) == (TurnEnd.STOPPED, "so far")
    assert bench.state() is TurnState.STOPPED


@pytest.mark.parametrize(
    ("script", "rows"),
    [([calls(ECHO), text("done [E1]")], 0), ([calls(ECHO)], 1)],
    ids=["a conclusion", "none"],
)
async def test_a_turn_without_a_conclusion_leaves_a_finding_in_the_audit_log(
    script: list[list[object]], rows: int
) -> None:
    bench = turn_bench(script)  # type: ignore[arg-type]
    final = await bench.answer()

    assert final is not None
    found = [e for e in bench.memory.audit_log if e.kind == "LLMToolDepthExceeded"]
    assert [(e.body["rounds"], e.body["results"]) for e in found] == [
        (final.rounds, len(final.evidence))
    ] * rows


DOWN = [ErrorChunk(ErrorKind.AUTH, "401 unauthorized")]
CUT: list[StreamChunk] = [TextChunk("half of"), ErrorChunk(ErrorKind.CUT, "cut")]


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ([calls(ECHO), text("done [E1]")], TurnEnd.ANSWERED),
        ([calls(ECHO, say="more")], TurnEnd.DEPTH_EXCEEDED),
        ([calls(ECHO)], TurnEnd.DEPTH_EXCEEDED),
        ([DOWN], TurnEnd.FAILED),
        ([calls(ECHO), DOWN], TurnEnd.FAILED),
        ([calls(ECHO), CUT], TurnEnd.FAILED),
    ],
    ids=["answered", "depth", "depth without text", "down", "down later", "cut"],
)
async def test_the_next_question_gets_a_well_formed_history(
    script: list[list[object]], end: TurnEnd
) -> None:
    bench = turn_bench(script)  # type: ignore[arg-type]
    final = await bench.answer()
    session = await bench.store.begin_turn(LATER, "ops", LATER_AT)

    history = await bench.store.history(session.id, LATER.turn_id)

    asked = [c.id for m in history for c in m.tool_calls]
    answered = [m.tool_result.call_id for m in history if m.tool_result]
    assert final is not None
    assert (final.end, bench.surface.finals) == (end, [final])
    assert asked == answered
    assert history[0].role is Role.USER
    assert all(m.text or m.tool_calls or m.tool_result for m in history)


async def test_text_cut_off_is_marked_for_the_next_turn() -> None:
    bench = turn_bench([CUT])

    await bench.answer()

    assert bench.store.turns[ASK.turn_id].messages[-1].text == "half of\n(cut off here)"


async def test_a_stop_during_tools_shows_the_rounds_text_once() -> None:
    tool = FakeTool(gate=asyncio.Event())
    bench = turn_bench([calls(ECHO, say="Looking.")], tools=[tool])

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(bench.answer())
        await tool.started.wait()
        await bench.stops.request(ASK.turn_id, ASK.asker.user)

    texts = [m.text for m in bench.store.turns[ASK.turn_id].messages if m.role is Role.ASSISTANT]
    assert texts == ["Looking."]


class _LosesTheDatabase(MemoryJournal):
    """The first step after one named is refused, as a database that went away would."""

    def __init__(self, after: str) -> None:
        super().__init__()
        self._after = after
        self._lost = False

    async def step(self, name, run, *, with_next=False):  # type: ignore[no-untyped-def]
        if self._lost:
            self._lost = False
            raise StorageUnavailable("database is locked")
        self._lost = name == self._after
        return await super().step(name, run, with_next=with_next)


@pytest.mark.parametrize("tick", range(12))
async def test_a_resumed_turn_whose_provider_lost_its_extra_is_answered_by_another(
    tick: int,
) -> None:
    """An upgrade in between may leave out an extra that a turn in flight needs."""
    first = ScriptedProvider([calls(ECHO, say="Looking."), text("It takes 41.5 ms.")], "bedrock")
    other = ScriptedProvider([text("It takes 41.5 ms.")], "other")
    bench = turn_bench(providers=[first, other])
    journal = MemoryJournal(Fuse(tick))
    with suppress(Crash):
        await bench.answer(journal=journal)
    first.unavailable_reason = "the extra kortex[aws] is not installed"
    asked = len(first.requests)

    final = await bench.answer(journal=journal.resumed())

    assert final is not None
    assert final.end is TurnEnd.ANSWERED
    assert "It takes 41.5 ms." in final.text
    assert len(first.requests) == asked
    assert bench.state() is TurnState.ANSWERED
