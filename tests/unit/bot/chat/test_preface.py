"""An answer without a model says first why there was none, in words."""

from dataclasses import replace

import pytest

from bot.chat.claims.answer import checked
from bot.chat.loop import Loop
from bot.chat.preface import preface
from bot.domain.turn_events import TextDelta, TurnEnd
from tests.fakes.journal import MemoryJournal
from tests.fixtures_rounds import said
from tests.unit.bot.chat.test_loop import QUESTION, Scripted, call

MEASURED = "This is what I measured without a model.\n\n"


@pytest.mark.parametrize(
    ("notice", "first"),
    [
        ("anthropic: overloaded (529)", f"Claude is not answering (HTTP 529). {MEASURED}"),
        (
            "openai: not asked for 30 s (rate limited)",
            f"OpenAI is not answering. {MEASURED}",
        ),
        ("ollama: no answer, tried twice", f"Ollama is not answering (no answer). {MEASURED}"),
        ("anthropic: quoting p99 of 3 s: [E1]", f"Claude is not answering. {MEASURED}"),
        ("the daily budget is spent", ""),
        ("checkout: 529", ""),
    ],
)
def test_the_first_line_says_who_is_not_answering(notice: str, first: str) -> None:
    words = preface([replace(said(1, ""), notices=(notice,))])

    assert words == first
    assert checked(words, (), {}, "")[0] == words


async def test_the_line_leads_the_text_once_and_is_part_of_it_when_replayed() -> None:
    looked = said(1, "", call("a"), provider="triage", notices=("anthropic: HTTP 503",))
    model = Scripted([looked, said(2, "Nothing is wrong.", provider="triage")])
    journal = MemoryJournal()
    for _ in range(2):
        heard: list[object] = []
        loop = Loop(model.ask, model.execute, journal, max_tool_rounds=3)
        end, talk = await loop.run(QUESTION, heard.append)
        text = "".join(each.text for each in heard if isinstance(each, TextDelta))

        assert end is TurnEnd.ANSWERED
        assert text == f"Claude is not answering (HTTP 503). {MEASURED}Nothing is wrong."
        assert talk.rounds[-1].text == text
