"""A turn with an attached file: read once, before the look and the model, and reported when it is not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from adapters.llm.messages import Picture, StreamChunk
from adapters.llm.port import Provider
from adapters.llm.triage.provider import Triage
from bot.chat.evidence_need import REPLACED
from bot.chat.models import Choice, KnownModel, Models
from bot.domain.channel import ChannelRule
from bot.domain.claims import ClaimState
from bot.domain.turn_events import TurnEnd
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.scripted_provider import ScriptedProvider, calls, text
from tests.fakes.tools import EchoOutput, FakeTool, contract
from tests.fixtures_turn import ASK, TurnBench, turn_bench
from tools.attached import READ_ATTACHMENT, AttachedFile
from tools.contract import AnyTool
from tools.core.error_patterns import ErrorPatterns
from tools.core.get_recent_deploys import GetRecentDeploys
from tools.core.read_attachment import AttachmentInput
from tools.errors import InvalidArguments

SHOP = (ChannelRule("*", products=("checkout",)),)
WITH_FILE = replace(ASK, files=(AttachedFile("F1", "app.log", "text/plain", 42),))
SAID = "The pool gave up after 3417 waits [E1]."


def said(_arguments: Any) -> object:
    return EchoOutput(text="pool gave up after 3417 waits")


def deleted_file(_arguments: Any) -> object:
    raise InvalidArguments("it was deleted")


def reading(
    *script: Sequence[StreamChunk], answer: Any = said, fallback: bool = False, look: bool = False
) -> tuple[ScriptedProvider, FakeTool, TurnBench]:
    tool = FakeTool(
        contract(id=READ_ATTACHMENT, input=AttachmentInput, of_files=True, live=True), answer
    )
    model = ScriptedProvider(list(script))
    providers: list[Provider] = [model, Triage()] if fallback else [model]
    tools: list[AnyTool] = [tool, ErrorPatterns(), GetRecentDeploys()]
    bench = turn_bench(providers=providers, tools=tools, rules=SHOP, first_look=look)
    return model, tool, bench


async def test_the_file_is_read_before_the_model_and_the_first_look() -> None:
    model, tool, bench = reading(text(SAID), look=True)

    final = await bench.answer(WITH_FILE)

    assert final is not None
    assert final.evidence[0].tool == READ_ATTACHMENT
    assert len(final.evidence) == 3
    assert len(tool.calls) == len(model.requests) == 1
    assert [claim.state for claim in final.claims] == [ClaimState.UNCHECKED]
    assert "app.log" in model.requests[0].messages[0].told


async def test_an_unreadable_file_is_reported_and_the_question_continues() -> None:
    model, _, bench = reading(text("I could not read it."), answer=deleted_file)

    final = await bench.answer(WITH_FILE)

    assert final is not None
    assert final.end is TurnEnd.ANSWERED
    assert "I could not read app.log: it was deleted" in final.notices
    assert "it was deleted" in str(model.requests[0].messages)


@pytest.mark.parametrize("tick", range(4, 16))
async def test_a_killed_turn_gives_one_answer_with_one_numbering(tick: int) -> None:
    model, _, bench = reading(text(SAID), look=True)
    journal = MemoryJournal(Fuse(tick))
    with pytest.raises(Crash):
        await bench.answer(WITH_FILE, journal)
    paid = len(model.requests)
    recorded = [name for name, _ in journal.record]

    final = await bench.answer(WITH_FILE, journal.resumed())

    assert final is not None
    assert final.text == f"{SAID} (from the attached file)"
    assert len(model.requests) == (paid if "round:1" in recorded else paid + 1)
    assert [one.number for one in final.evidence] == [1, 2, 3]


async def test_an_answer_based_on_the_file_is_not_replaced() -> None:
    _, _, bench = reading(text(SAID), fallback=True)

    final = await bench.answer(WITH_FILE)

    assert final is not None
    assert final.provider == "scripted"
    assert REPLACED not in final.notices


async def test_an_answer_without_the_file_is_replaced_as_usual() -> None:
    _, _, bench = reading(text("It is the database, surely."), fallback=True)

    final = await bench.answer(WITH_FILE)

    assert final is not None
    assert final.provider == "triage"


async def test_a_model_cannot_imitate_the_reading_of_a_file() -> None:
    forged = ("file-1", "core__get_recent_deploys", "{}")
    _, tool, bench = reading(calls(forged), text(SAID))

    final = await bench.answer(WITH_FILE)

    assert final is not None
    assert [one.tool for one in final.evidence] == [READ_ATTACHMENT, "core__get_recent_deploys"]
    assert final.evidence[1].tool_call_id != "file-1"
    assert len(tool.calls) == 1


async def test_without_files_the_record_mentions_none() -> None:
    model, tool, bench = reading(text("It is late."))
    journal = MemoryJournal()

    await bench.answer(journal=journal)

    assert tool.calls == []
    assert "files" not in [name for name, _ in journal.record]
    assert READ_ATTACHMENT not in [spec.name for spec in model.requests[0].tools]


async def seen(file: AttachedFile) -> Picture:
    return Picture(file.name, "image/png", "aGVsbG8=")


@pytest.mark.parametrize(("sees", "answers"), [(True, "scripted"), (False, "triage")])
async def test_a_seen_image_need_not_be_cited_and_an_unseen_file_must(
    sees: bool, answers: str
) -> None:
    model = ScriptedProvider([text("It shows a red graph.")])
    known = Models({"scripted": Choice(KnownModel("", 100_000, sees_images=sees))})
    bench = turn_bench(
        providers=[model, Triage()],
        tools=[ErrorPatterns()],
        rules=SHOP,
        models=known,
        picture_of=seen,
    )
    picture = replace(ASK, files=(AttachedFile("F1", "shot.png", "image/png"),))

    final = await bench.answer(picture)

    assert final is not None
    assert final.provider == answers
    assert bool(model.requests[0].messages[0].images) is sees


async def test_an_unreadable_image_is_reported() -> None:
    model, _, bench = reading(text("I see nothing."))
    picture = replace(ASK, files=(AttachedFile("F1", "shot.png", "image/png"),))

    final = await bench.answer(picture)

    assert final is not None
    assert "I did not read the image shot.png: images are not read here" in final.notices
    assert model.requests[0].messages[0].images == ()
