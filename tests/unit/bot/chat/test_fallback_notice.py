"""An answer without a model says first why there was none, in words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from bot.chat.claims.answer import checked
from bot.chat.fallback_notice import preface
from bot.chat.loop import Loop
from bot.domain.turn_events import TextDelta, TurnEnd
from tests.fakes.journal import MemoryJournal
from tests.fixtures_rounds import said
from tests.unit.bot.chat.test_loop import QUESTION, Scripted, call

NOW = datetime(2026, 11, 22, 14, 30, tzinfo=UTC)
MEASURED = "This is what I measured without a model.\n\n"


@pytest.mark.parametrize(
    ("notice", "first"),
    [
        ("anthropic: overloaded (529)", f"Claude is not answering (HTTP 529). {MEASURED}"),
        ("anthropic answered 529: busy", f"Claude is not answering (HTTP 529). {MEASURED}"),
        ("anthropic answered 42: yes", ""),
        (
            "openai: rate limited, not asked for 30 s",
            f"OpenAI is not answering (rate limited). {MEASURED}",
        ),
        ("ollama: no answer, tried twice", f"Ollama is not answering (no answer). {MEASURED}"),
        ("anthropic: quoting p99 of 3 s: [E1]", f"Claude is not answering. {MEASURED}"),
        ("the daily budget is spent", ""),
        ("checkout: 529", ""),
    ],
)
def test_the_first_line_names_the_missing_provider(notice: str, first: str) -> None:
    words = preface([replace(said(1, ""), notices=(notice,))], NOW)

    assert words == first
    assert checked(words, (), {}, "")[0] == words


@pytest.mark.parametrize(
    ("since", "told"),
    [
        (NOW.replace(minute=2), "HTTP 529 since 14:02 UTC"),
        (
            NOW.replace(minute=2).astimezone(timezone(timedelta(hours=9))),
            "HTTP 529 since 14:02 UTC",
        ),
        (NOW.replace(day=21, hour=22), "HTTP 529 since 2026-11-21 22:30 UTC"),
    ],
)
def test_the_notice_has_an_unmarked_start_time_in_the_answers_zone(
    since: datetime, told: str
) -> None:
    failed = replace(
        said(1, ""), notices=("anthropic: overloaded (529)",), failing=(("anthropic", since),)
    )
    words = preface([failed], NOW)

    assert words == f"Claude is not answering ({told}). {MEASURED}"
    answer = f"At 13:37 it broke.\n\n{words}p99 is 3 s."
    marked = checked(answer, (), {}, "", words)[0]
    assert words in marked
    assert marked.count("⚠ not checked") == 2


def test_a_pause_has_its_reason_and_its_start() -> None:
    limited = replace(
        said(1, ""),
        notices=("openai: rate limited, not asked for 30 s",),
        failing=(("openai", NOW), ("anthropic", NOW)),
    )
    assert (
        preface([limited], NOW)
        == f"OpenAI is not answering (rate limited since 14:30 UTC). {MEASURED}"
    )


async def test_the_notice_leads_the_text_once_also_on_replay() -> None:
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
