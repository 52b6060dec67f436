"""The tool loop: calls answered once and in order, limits that keep the evidence, exact replay."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from adapters.llm.messages import (
    CompleteRequest,
    ErrorKind,
    Message,
    Role,
    StopReason,
    ToolCall,
    ToolSpec,
    Usage,
)
from bot.chat.conversation import Conversation, stop_reason, wrap_evidence
from bot.chat.evidence_need import REPLACED, UNCHECKED
from bot.chat.loop import PARALLEL_CALLS, Emit, Loop
from bot.chat.round_record import RoundRecord
from bot.cli.headless import PlainJournal
from bot.domain.turn_events import (
    Notice,
    ProposalRaised,
    RoundReplaced,
    TextDelta,
    ToolProgress,
    TurnEnd,
    TurnEvent,
)
from bot.ports.failures import StorageUnavailable
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fixtures_rounds import said
from tools.call_limits import Spent
from tools.errors import ToolErrorCode
from tools.records import CallEnded, CallEvent, CallStarted, ToolInvocationRecord, ToolOutcome

AT = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
QUESTION = CompleteRequest(system="s", messages=(Message(Role.USER, text="why?"),))
NEEDS = replace(QUESTION, require_tool=True, tools=(ToolSpec("core__get_logs", "Logs.", {}),))


def outcome(call: ToolCall, error: ToolErrorCode | None = None) -> ToolOutcome:
    """What came of a call: its own id and name, or a failure."""
    record = ToolInvocationRecord(
        call.id, call.name, {}, error is None, error, "", AT, AT, 2, truncated=False
    )
    content = json.dumps({"error": error.value} if error else {"call": call.id})
    return ToolOutcome(record, content, "", f"p-{call.id}" if call.name == "propose" else None)


FOUND = said(3, "checkout rose [E1].", provider="triage")


@dataclass
class Scripted:
    """A model that plays `script`, and tools that answer with their call, in a chosen order."""

    script: Sequence[RoundRecord]
    errors: dict[str, ToolErrorCode] = field(default_factory=dict)
    full: list[bool] = field(default_factory=list)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    releases: dict[str, str] = field(default_factory=dict)
    requests: list[CompleteRequest] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    untrusted: list[bool] = field(default_factory=list)
    preferred: list[str] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)

    async def ask(
        self, request: CompleteRequest, number: int, emit: Emit, prefer: str, *, full: bool
    ) -> RoundRecord:
        self.full.append(full)
        self.requests.append(request)
        self.asked.append(number)
        self.preferred.append(prefer)
        record = self.script[min(number, len(self.script)) - 1]
        for notice in record.notices:
            emit(Notice(notice))
        if record.text:
            emit(TextDelta(record.text))
        return record

    async def execute(
        self,
        call: ToolCall,
        on_event: Callable[[CallEvent], None],
        *,
        untrusted_read: bool,
        spent: Spent,
    ) -> ToolOutcome:
        self.spent.append(spent)
        self.ran.append(call.id)
        self.untrusted.append(untrusted_read)
        on_event(CallStarted(call.id, call.name, {}))
        if call.id in self.held:
            await self.held[call.id].wait()
        done = outcome(call, self.errors.get(call.id))
        self.finished.append(call.id)
        on_event(CallEnded(done))
        if call.id in self.releases:
            self.held[self.releases[call.id]].set()
        return done

    async def run(
        self,
        journal: PlainJournal | MemoryJournal | None = None,
        *,
        limit: int = 3,
        question: CompleteRequest = QUESTION,
        fallback: str = "",
    ) -> tuple[TurnEnd, Conversation, list[TurnEvent]]:
        events: list[TurnEvent] = []
        journal = journal or PlainJournal()
        loop = Loop(self.ask, self.execute, journal, max_tool_rounds=limit, fallback=fallback)
        async with asyncio.timeout(5):
            end, talk = await loop.run(question, events.append)
        return end, talk, events


def call(call_id: str, name: str = "core__get_logs", arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def answered(talk: Conversation) -> list[str]:
    """The ids of the results, in the order in which the model reads them."""
    return [m.tool_result.call_id for m in talk.said if m.tool_result]


def asked(talk: Conversation) -> list[str]:
    return [c.id for m in talk.said for c in m.tool_calls]


async def test_parallel_calls_are_answered_in_call_order() -> None:
    scripted = Scripted(
        [said(1, "", call("a"), call("b"), call("c")), said(2, "done")],
        held={"a": asyncio.Event(), "b": asyncio.Event()},
        releases={"c": "b", "b": "a"},
    )

    end, talk, _ = await scripted.run()

    assert end is TurnEnd.ANSWERED
    assert scripted.finished == ["c", "b", "a"]
    assert answered(talk) == ["a", "b", "c"]
    assert [(e.number, e.tool_call_id) for e in talk.evidence] == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize(
    "ids", [["x", "x"], ["", ""], ["x_2", "x", "x"], ["", "call_2", ""], ["a", "b", "a"]]
)
async def test_repeated_and_missing_ids_become_unique_and_each_call_runs_once(
    ids: list[str],
) -> None:
    scripted = Scripted([said(1, "", *map(call, ids)), said(2, "done")])

    _, talk, _ = await scripted.run()

    assert len(set(scripted.ran)) == len(ids)
    assert asked(talk) == answered(talk) == scripted.ran
    assert "" not in scripted.ran


async def test_ids_that_a_model_reuses_each_round_are_distinguished() -> None:
    scripted = Scripted([said(1, "", call("0")), said(2, "", call("0")), said(3, "done")])

    _, talk, _ = await scripted.run()

    assert answered(talk) == ["0", "0_2"]


async def test_an_id_of_an_earlier_turn_is_not_reused() -> None:
    scripted = Scripted([said(1, "", call("0")), said(2, "done")])
    before = Message(Role.ASSISTANT, tool_calls=(call("0"),))
    loop = Loop(scripted.ask, scripted.execute, PlainJournal(), max_tool_rounds=3)

    _, talk = await loop.run(CompleteRequest("s", (before,)), lambda _: None)

    assert answered(talk) == ["0_2"]


async def test_a_failed_call_is_an_error_result_and_the_loop_continues() -> None:
    scripted = Scripted(
        [said(1, "", call("bad", arguments="{not json"), call("good")), said(2, "done")],
        errors={"bad": ToolErrorCode.INVALID_JSON},
    )

    end, talk, _ = await scripted.run()

    results = [m.tool_result for m in scripted.requests[1].messages if m.tool_result]
    assert end is TurnEnd.ANSWERED
    assert [(r.call_id, r.is_error) for r in results] == [("bad", True), ("good", False)]
    assert [e.ok for e in talk.evidence] == [False, True]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_the_limit_of_tool_rounds_keeps_the_evidence(limit: int) -> None:
    scripted = Scripted([said(n, "more", call(f"c{n}")) for n in range(1, 9)])

    end, talk, _ = await scripted.run(limit=limit)

    assert end is TurnEnd.DEPTH_EXCEEDED
    assert len(talk.evidence) == len(scripted.ran) == limit
    assert len(talk.rounds) == limit + 1


async def test_a_conclusion_in_the_last_allowed_round_is_an_answer() -> None:
    scripted = Scripted([said(1, "", call("a")), said(2, "", call("b")), said(3, "It is the db.")])

    end, talk, _ = await scripted.run(limit=2)

    assert (end, talk.text) == (TurnEnd.ANSWERED, "It is the db.")


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({"stopped": True}, TurnEnd.STOPPED),
        ({"error": ErrorKind.CUT}, TurnEnd.FAILED),
        ({"error": ErrorKind.QUOTA, "out_of_budget": True}, TurnEnd.BUDGET),
        ({"stopped": True, "error": ErrorKind.CUT}, TurnEnd.STOPPED),
    ],
)
async def test_a_round_that_broke_runs_none_of_its_calls(
    changes: dict[str, object], end: TurnEnd
) -> None:
    scripted = Scripted([said(1, "half", call("a"), **changes)])

    ended, talk, _ = await scripted.run()

    assert ended is end
    assert (scripted.ran, talk.said, talk.text) == ([], [], "half")


class Losing(PlainJournal):
    """Runs every step, and loses the record of the last."""

    async def steps(
        self,
        parts: Sequence[tuple[str, Callable[[], Awaitable[JsonValue]]]],
    ) -> Sequence[JsonValue]:
        await super().steps(parts)
        raise StorageUnavailable("gone")


async def test_shown_results_are_kept_when_the_round_is_not_recorded() -> None:
    scripted = Scripted([said(1, "I look.", call("a"), call("b"))])
    loop = Loop(scripted.ask, scripted.execute, Losing(), max_tool_rounds=3)

    with pytest.raises(StorageUnavailable):
        await loop.run(QUESTION, lambda _: None)

    assert loop.talk is not None
    assert [e.tool_call_id for e in loop.talk.evidence] == ["a", "b"]


async def test_a_stop_during_tools_answers_every_call_and_starts_no_round() -> None:
    scripted = Scripted([said(1, "", call("a"), call("b"))], errors={"b": ToolErrorCode.CANCELLED})

    end, talk, _ = await scripted.run()

    assert end is TurnEnd.STOPPED
    assert scripted.asked == [1]
    assert asked(talk) == answered(talk) == ["a", "b"]


async def test_calls_after_the_first_results_are_marked_as_having_read_them() -> None:
    scripted = Scripted(
        [said(1, "", call("a"), call("b")), said(2, "", call("c")), said(3, "done")]
    )

    await scripted.run()

    assert scripted.untrusted == [False, False, True]


async def test_a_turn_stays_with_the_provider_that_answered_and_sums_what_it_cost() -> None:
    scripted = Scripted([said(1, "", call("a")), said(2, "done")])

    _, talk, _ = await scripted.run()

    assert scripted.preferred == ["", "scripted"]
    assert (talk.usage, talk.cost_usd_micros) == (Usage(20, 0, 0, 2), 14)
    assert stop_reason(talk) is StopReason.END_TURN


async def test_one_round_with_an_unknown_price_makes_the_sum_unknown() -> None:
    scripted = Scripted([said(1, "", call("a"), cost_usd_micros=None), said(2, "done")])

    _, talk, _ = await scripted.run()

    assert talk.cost_usd_micros is None


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.sampled_from(
    ["", "NaN", '{"a":1}}', '"unclosed', "[1,]", '{"result":1},"evidence":"E9"', "\ud800"]
)


@given(number=st.integers(1, 999), content=ANY_TEXT | JSON.map(json.dumps))
def test_any_tool_output_is_one_json_object_under_its_number(number: int, content: str) -> None:
    wrapped = json.loads(wrap_evidence(number, content))

    assert set(wrapped) == {"evidence", "untrusted", "result"}
    assert (wrapped["evidence"], wrapped["untrusted"]) == (f"E{number}", True)


@given(value=JSON)
def test_a_json_result_reads_back_as_itself(value: object) -> None:
    content = json.dumps(value)

    assert json.loads(wrap_evidence(1, content))["result"] == json.loads(content)


def visible_events(events: Sequence[TurnEvent]) -> list[object]:
    """What people can see. Calls of one round end in any order, so they go by number."""
    ended = [
        (e.evidence or 0, e.event.outcome)
        for e in events
        if isinstance(e, ToolProgress) and isinstance(e.event, CallEnded)
    ]
    texts = [e for e in events if isinstance(e, TextDelta | Notice)]
    return [texts, sorted(ended, key=lambda pair: pair[0]), *_proposals(events)]


def _proposals(events: Sequence[TurnEvent]) -> list[TurnEvent]:
    return [e for e in events if isinstance(e, ProposalRaised)]


def story() -> Scripted:
    return Scripted(
        [
            said(1, "Looking.", call("a"), call("a"), notices=("failed over",)),
            said(2, "", call("p", "propose"), call("b")),
            said(3, "It is the db [E1]."),
        ],
        errors={"b": ToolErrorCode.UPSTREAM},
    )


# Seven steps, each with a moment before it runs and one before it is recorded.
@pytest.mark.parametrize("tick", range(14))
async def test_a_resumed_turn_shows_the_same_and_repeats_no_recorded_step(
    tick: int,
) -> None:
    expected_end, expected, events = await story().run(MemoryJournal(at_once=True))
    scripted, journal = story(), MemoryJournal(Fuse(tick), at_once=True)
    with pytest.raises(Crash):
        await scripted.run(journal)
    recorded = [name for name, _ in journal.record]
    before = [*map(str, scripted.asked), *scripted.ran]

    end, talk, replayed = await scripted.run(journal.resumed())

    runs = [*map(str, scripted.asked), *scripted.ran]
    assert (end, visible_events(replayed)) == (expected_end, visible_events(events))
    assert (talk.said, talk.evidence) == (expected.said, expected.evidence)
    assert (len(recorded), len(journal.record)) == (tick // 2, 7)
    assert len(runs) == 7 + tick % 2  # only the step that was under way ran a second time
    assert len(before) == tick // 2 + tick % 2


async def test_a_finished_turn_replays_without_any_call() -> None:
    journal = MemoryJournal(at_once=True)
    _, _, events = await story().run(journal)
    again = story()

    _, _, replayed = await again.run(journal.resumed())

    assert (again.asked, again.ran) == ([], [])
    assert visible_events(replayed) == visible_events(events)


async def test_a_discarded_round_leaves_only_its_cost() -> None:
    scripted = Scripted(
        [
            said(1, "looking", call("a")),
            said(2, "I am not su", passed_on=True, notices=("passed on",)),
            said(3, "the cause"),
        ]
    )

    end, talk, events = await scripted.run(limit=1)

    assert (end, talk.text, talk.cost_usd_micros) == (TurnEnd.ANSWERED, "looking\n\nthe cause", 21)
    assert scripted.full == [False, False, True]
    assert RoundReplaced(2) in events
    assert [m.text for m in talk.said if m.role is Role.ASSISTANT] == ["looking", "the cause"]


async def test_a_discarded_round_is_discarded_again_on_replay() -> None:
    journal = MemoryJournal(at_once=True)
    script = [said(1, "half", passed_on=True), said(2, "whole")]
    await Scripted(script).run(journal=journal)

    again = Scripted(script)
    end, talk, events = await again.run(journal=journal.resumed())

    assert (end, talk.text, again.asked) == (TurnEnd.ANSWERED, "whole", [])
    assert RoundReplaced(1) in events


async def test_an_answer_without_evidence_is_replaced_by_triage() -> None:
    scripted = Scripted(
        [said(1, "It is the database."), said(2, "", call("a"), provider="triage"), FOUND]
    )

    end, talk, events = await scripted.run(question=NEEDS, fallback="triage")

    assert (end, talk.text) == (TurnEnd.ANSWERED, "checkout rose [E1].")
    assert scripted.preferred == ["", "triage", "triage"]
    assert [r.require_tool for r in scripted.requests] == [True, False, False]
    assert events.index(RoundReplaced(1)) > events.index(Notice(REPLACED))
    assert [m.text for m in talk.said if m.role is Role.ASSISTANT] == ["", "checkout rose [E1]."]
    assert talk.rounds[0].notices == (REPLACED,)
    assert talk.cost_usd_micros == 21


@pytest.mark.parametrize("name", ["core__get_current_time", "core__report_findings"])
async def test_calls_that_read_nothing_or_failed_are_no_evidence(name: str) -> None:
    scripted = Scripted(
        [
            said(1, "Looking.", call("a", name), call("b")),
            said(2, "It is the database."),
            said(3, "", call("c"), provider="triage"),
            FOUND,
        ],
        errors={"b": ToolErrorCode.VALIDATION},
    )

    _, talk, _ = await scripted.run(question=NEEDS, fallback="triage", limit=2)

    assert talk.text == "checkout rose [E1]."
    assert scripted.preferred[2:] == ["triage", "triage"]


@pytest.mark.parametrize(
    ("question", "script"),
    [
        (QUESTION, [said(1, "It is the database.")]),
        (NEEDS, [said(1, "Which product do you mean?")]),
        (NEEDS, [said(1, "", call("a")), said(2, "It is the database [E1].")]),
        (NEEDS, [said(1, "It is the database.", provider="triage")]),
    ],
)
async def test_small_talk_a_question_back_and_a_read_answer_are_accepted(
    question: CompleteRequest, script: Sequence[RoundRecord]
) -> None:
    _, talk, events = await Scripted(script).run(question=question, fallback="triage")

    assert talk.text == script[-1].text
    assert not [e for e in events if isinstance(e, RoundReplaced | Notice)]


@pytest.mark.parametrize(
    ("fallback", "tools"),
    [
        ("", NEEDS.tools),
        ("triage", ()),
        ("triage", (ToolSpec("core__get_incident_history", "reads no signal", {}),)),
    ],
)
async def test_without_an_investigator_the_answer_stays_with_a_notice(
    fallback: str, tools: tuple[ToolSpec, ...]
) -> None:
    scripted = Scripted([said(1, "It is the database.")])

    _, talk, events = await scripted.run(question=replace(NEEDS, tools=tools), fallback=fallback)

    assert talk.text == "It is the database."
    assert talk.rounds[0].notices == (UNCHECKED,)
    assert Notice(UNCHECKED) in events


async def test_a_rejected_answer_is_rejected_again_on_replay() -> None:
    journal = MemoryJournal(at_once=True)
    script = [said(1, "A guess."), said(2, "", call("a"), provider="triage"), FOUND]
    await Scripted(script).run(journal=journal, question=NEEDS, fallback="triage")

    again = Scripted(script)
    _, talk, events = await again.run(journal=journal.resumed(), question=NEEDS, fallback="triage")

    assert (talk.text, again.asked) == ("checkout rose [E1].", [])
    assert RoundReplaced(1) in events


async def test_each_call_gets_the_turns_spending_and_its_repetitions() -> None:
    same = [call("a", arguments='{"x":1,"y":2}'), call("b", arguments='{"y": 2, "x": 1}')]
    other = call("c", arguments="{not json")
    scripted = Scripted(
        [said(1, "", *same, other), said(2, "", call("d", arguments='{"y":2,"x":1}')), said(3, "x")]
    )

    await scripted.run()

    assert scripted.spent == [Spent(0, 0, 0), Spent(1, 0, 1), Spent(2, 0, 0), Spent(3, 6, 2)]


@pytest.mark.parametrize("tick", range(0, 14, 2))
async def test_a_resumed_turn_counts_the_same(tick: int) -> None:
    whole = story()
    await whole.run(MemoryJournal(at_once=True))
    before, journal = story(), MemoryJournal(Fuse(tick), at_once=True)
    with pytest.raises(Crash):
        await before.run(journal)

    after = story()
    await after.run(journal.resumed())

    assert [*before.spent, *after.spent] == whole.spent


class Counting(Scripted):
    """Counts how many of its calls are under way."""

    under_way = most = 0

    async def execute(self, *args: object, **kwargs: object) -> ToolOutcome:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return await super().execute(*args, **kwargs)  # type: ignore[arg-type]


async def test_ten_of_a_hundred_calls_run_at_once() -> None:
    calls = [call(f"c{n}", arguments=f'{{"n":{n}}}') for n in range(100)]
    counting = Counting([said(1, "", *calls), said(2, "done")])

    _, talk, _ = await counting.run()

    assert counting.most == PARALLEL_CALLS
    assert answered(talk) == [c.id for c in calls]
