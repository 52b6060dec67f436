"""A model begins with what was computed: as evidence like any, once, and no longer than it may take."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from adapters.llm.messages import Role, StreamChunk
from adapters.llm.port import Provider
from adapters.llm.triage.provider import Triage
from bot.chat import tool_calls
from bot.chat.evidence_need import REPLACED
from bot.domain.channel import ChannelRule
from bot.domain.findings import findings_of
from bot.domain.turn_events import RoundReplaced, TextDelta, TurnEnd
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.scripted_provider import ScriptedProvider, calls, text
from tests.fakes.tools import FakeTool, contract
from tests.fixtures_turn import ASK, LATER, TurnBench, turn_bench
from tools.core.error_patterns import ErrorPatterns
from tools.core.get_recent_deploys import GetRecentDeploys
from tools.core.report_findings import ReportFindings
from tools.core.sweep_arguments import SweepInput
from tools.core.sweep_metrics import SweepMetrics
from tools.errors import ToolErrorCode
from tools.redactor import Redacted

SWEEPS = (SweepMetrics(), ErrorPatterns(), GetRecentDeploys())
SHOP = (ChannelRule("*", products=("checkout", "cart")),)
LOOKED = ["core__sweep_metrics", "core__error_patterns", "core__get_recent_deploys"]
GOOD = text("Nothing was deployed [E3].")


def looking(
    *script: Sequence[StreamChunk], fallback: bool = False, **more: Any
) -> tuple[ScriptedProvider, TurnBench]:
    model = ScriptedProvider(list(script))
    providers: list[Provider] = [model, Triage()] if fallback else [model]
    options = {"tools": SWEEPS, "rules": SHOP, "first_look": True, **more}
    return model, turn_bench(providers=providers, **options)


def shown(bench: TurnBench) -> str:
    events = bench.surface.streams[-1].events
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_the_first_evidence_exists_before_the_model_is_asked() -> None:
    model, bench = looking(GOOD)

    final = await bench.answer()

    assert final is not None
    assert [one.tool for one in final.evidence] == LOOKED
    assert (final.end, final.rounds, final.text) == (TurnEnd.ANSWERED, 1, GOOD[0].text)  # type: ignore[union-attr]
    [request] = model.requests
    question, asking, *answers = request.messages
    assert (question.role, [c.name for c in asking.tool_calls]) == (Role.USER, LOOKED)
    read = [orjson.loads(m.tool_result.content) for m in answers if m.tool_result]
    assert [(one["evidence"], one["untrusted"]) for one in read] == [("E1", True), ("E2", True), ("E3", True)]  # fmt: skip
    assert not request.require_tool


@pytest.mark.parametrize("words", ["thanks!", "hi", "show me the logs of checkout"])
async def test_a_question_without_a_cause_gets_no_first_look(words: str) -> None:
    model, bench = looking(text("You are welcome."))

    await bench.answer(replace(ASK, text=Redacted(words)))

    assert [len(request.messages) for request in model.requests] == [1]


async def test_the_first_look_can_be_disabled_and_is_not_made_for_triage() -> None:
    model, bench = looking(calls(("c1", "core__error_patterns", "{}")), GOOD, first_look=False)
    alone = turn_bench(providers=[Triage()], tools=SWEEPS, rules=SHOP, first_look=True)
    journal = MemoryJournal()

    await bench.answer()
    await alone.answer(journal=journal)

    assert len(model.requests[0].messages) == 1
    assert model.requests[0].require_tool
    assert "look" not in [name for name, _ in journal.record]


@pytest.mark.parametrize("away", ["connection refused", ""])
async def test_an_unavailable_model_leaves_the_look_to_triage(
    away: str,
) -> None:
    model, bench = looking(text("It is the database, surely."), fallback=True)
    model.unavailable_reason = away or None

    final = await bench.answer()

    assert final is not None
    assert (final.provider, final.end) == ("triage", TurnEnd.ANSWERED)
    made = [one.tool for one in final.evidence]
    assert [made.count(tool) for tool in LOOKED] == [1, 1, 1]


@pytest.mark.parametrize(
    "words",
    [
        "It is the database, surely.",  # cites nothing
        "It is the database [E9].",  # cites what is not there
        "Its p99 rose to 31.7 s at 02:14 [E1].",  # E1 has none of it
    ],
)
async def test_an_answer_without_its_evidence_is_replaced(words: str) -> None:
    _, bench = looking(text(words), fallback=True)

    final = await bench.answer()

    assert final is not None
    assert final.provider == "triage"
    assert words not in final.text
    assert REPLACED in final.notices
    assert RoundReplaced(1) in bench.surface.streams[-1].events


@pytest.mark.parametrize(("times", "id_"), [(1, "c"), (3, "c"), (1, "triage-")])
async def test_findings_of_a_rejected_answer_are_not_the_outcome(times: int, id_: str) -> None:
    stated = '{"verdict":"healthy","suspects":[],"looked_at":[],"missing":[]}'
    said = [calls((f"{id_}{n}", "core__report_findings", stated)) for n in range(times)]
    script = (*said, text("All is well."))
    _, bench = looking(*script, fallback=True, tools=[*SWEEPS, ReportFindings()], max_tool_rounds=8)

    final = await bench.answer()

    assert final is not None
    assert final.provider == "triage"
    assert findings_of(final, ("checkout",)).verdict == "unknown"


async def test_rejected_words_were_never_shown() -> None:
    _, bench = looking(text("It is ", "the database."), fallback=True)
    await bench.answer()
    assert "database" not in shown(bench)


async def test_an_answer_that_cites_the_look_or_reads_more_is_accepted() -> None:
    _, bench = looking(GOOD, fallback=True)
    closer = calls(
        ("c1", "core__error_patterns", '{"time_range":"last 2h"}'), say="Looking closer."
    )
    _, other = looking(closer, text("No lines."), fallback=True)

    finals = [await bench.answer(), await other.answer()]

    assert [final.provider for final in finals if final] == ["scripted", "scripted"]
    assert shown(bench) == "Nothing was deployed [E3]."
    assert shown(other) == "Looking closer.No lines."


async def test_the_models_own_call_is_shown_completely_with_any_id() -> None:
    model, bench = looking(
        calls(("look-9", "core__error_patterns", '{"time_range":"last 2h"}')), GOOD
    )

    await bench.answer()

    *_, asking, answer = model.requests[-1].messages
    assert [c.id for c in asking.tool_calls] == ["call_look-9"]
    assert answer.tool_result is not None
    assert "errors_before" in answer.tool_result.content


async def test_the_next_question_starts_with_the_earlier_results() -> None:
    model, bench = looking(GOOD)

    await bench.answer()
    await bench.answer(LATER)

    first, second = (request.messages for request in model.requests)
    assert second[: len(first)] == first
    ids = [c.id for m in second for c in m.tool_calls]
    assert len(ids) == len(set(ids)) == 6


async def test_an_unreadable_source_is_reported_as_unread() -> None:
    def fails(_: object) -> object:
        raise ConnectionError("loki.internal is gone")

    sick = FakeTool(contract(id="core__error_patterns", input=SweepInput), fails)
    model, bench = looking(GOOD, tools=[SweepMetrics(), sick, GetRecentDeploys()])

    final = await bench.answer()

    assert final is not None
    assert [one.ok for one in final.evidence] == [True, False, True]
    told = [m.tool_result for m in model.requests[0].messages if m.tool_result]
    assert [one.is_error for one in told] == [False, True, False]
    assert "logs: could not be read" in told[0].content


async def test_a_hanging_backend_delays_the_model_only_by_the_looks_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.01)
    hangs = FakeTool(contract(id="core__error_patterns", input=SweepInput), gate=asyncio.Event())
    _, bench = looking(GOOD, tools=[hangs, GetRecentDeploys()])

    final = await bench.answer()

    assert final is not None
    codes = [outcome.record.error_code for outcome in final.outcomes]
    assert codes == [ToolErrorCode.TOOL_TIMEOUT, None]


async def test_a_stop_ends_the_first_look() -> None:
    hangs = FakeTool(contract(id="core__error_patterns", input=SweepInput), gate=asyncio.Event())
    model, bench = looking(GOOD, tools=[hangs])
    answering = asyncio.create_task(bench.answer())
    await asyncio.wait_for(hangs.started.wait(), 5)

    await bench.stops.request(ASK.turn_id, ASK.asker.user)
    final = await answering

    assert final is not None
    assert (final.end, model.requests) == (TurnEnd.STOPPED, [])


@pytest.mark.parametrize("tick", range(4, 14))
async def test_a_killed_turn_repeats_no_step_and_pays_no_round_twice(tick: int) -> None:
    model, bench = looking(GOOD)
    journal = MemoryJournal(Fuse(tick))
    with pytest.raises(Crash):
        await bench.answer(journal=journal)
    paid = len(model.requests)
    recorded = [name for name, _ in journal.record]

    final = await bench.answer(journal=journal.resumed())

    assert final is not None
    assert final.text == "Nothing was deployed [E3]."
    assert len(model.requests) == (paid if "round:1" in recorded else paid + 1)
    assert [one.tool for one in final.evidence] == LOOKED


async def test_a_turn_of_a_release_without_it_continues_without_it() -> None:
    model, bench = looking(GOOD)
    journal = MemoryJournal()
    await bench.answer(journal=journal)
    name, opened = journal.record[0]
    begun = [(name, orjson.dumps(orjson.loads(opened)[:8])), journal.record[1]]

    await bench.answer(journal=MemoryJournal(record=begun))

    assert len(model.requests[-1].messages) == 1
