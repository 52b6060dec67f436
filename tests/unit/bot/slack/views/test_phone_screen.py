"""An answer fits a phone's screen: headline, evidence, one chart, one row of buttons."""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from bot.demo.workspace.block_rules import check_blocks, check_view
from bot.domain.claims import Claim, ClaimState
from bot.domain.phone_screen import whole_of
from bot.domain.turn_events import (
    Evidence,
    RoundStarted,
    TextDelta,
    TurnEnd,
    TurnEvent,
    TurnFinished,
)
from bot.slack.text.blocks import Block, Part
from bot.slack.views.render import AnswerView, render
from bot.slack.views.sources import Source, fits_view, results_view
from tests.charted_results import COMPARE, compared, result
from tests.golden.slack_views import TURN, finished, outcome, started, view
from tools.records import ToolOutcome

LINE_CHARS = 45  # of a phone in portrait
SCREEN_LINES = 25
POD_ROWS: JsonValue = [[f"checkout-{n}", "Running", "9m"] for n in range(100)]
HEADLINE = "Most likely cause: the deploy of checkout v2.4.0 at 23:01 UTC."
TEXT = "\n".join(
    [
        f"**{HEADLINE}**",
        "",
        "- p99 latency rose to 1.8 s at 23:02 UTC (normally 0.22 s) [E1]",
        "- checkout itself spends 713 ms in POST v1 orders (normally 38 ms) [E2]",
        "- 38 new error lines of checkout [E3]",
        "- v2.4.0 went out at 23:01 UTC, replacing v2.3.7 [E4]",
        "- all pods run, none restarted [E9]",
    ]
)
CALLS: tuple[ToolOutcome, ...] = (
    *(result(COMPARE, compared(), call=f"chart{n}") for n in range(8)),
    result("core__kubectl_get", {"columns": ["Name", "Status", "Age"], "rows": POD_ROWS}, call="k"),
    *(outcome(f"more{n}", truncated=n == 3) for n in range(11)),
)


def answer(**changes: object) -> TurnFinished:
    evidence = tuple(Evidence.of(number, each) for number, each in enumerate(CALLS, 1))
    claims = tuple(
        Claim(line, (number,), ClaimState.SUPPORTED)
        for number in range(1, 10)
        for line in TEXT.split("\n")
        if f"[E{number}]" in line
    )
    notices = tuple(f"anthropic was overloaded at minute {n}; openai answered" for n in range(9))
    return finished(
        text=TEXT, outcomes=CALLS, evidence=evidence, claims=claims, notices=notices, **changes
    )


def rendered(final: TurnFinished) -> Part:
    (part,) = render(view([final]))
    return part


def texts(block: Block) -> Iterator[str]:
    match block.get("type"):
        case "markdown":
            yield str(block["text"])
        case "context":
            elements = block["elements"]
            assert isinstance(elements, list)
            yield from (str(each["text"]) for each in elements if isinstance(each, dict))


def lines_on_a_phone(part: Part) -> int:
    said = [line for block in part.blocks for text in texts(block) for line in text.split("\n")]
    return sum(max(1, len(textwrap.wrap(line, LINE_CHARS))) for line in said)


def test_twenty_calls_eight_charts_and_a_long_table_fit_a_screen() -> None:
    part = rendered(answer())

    assert [block["type"] for block in part.blocks] == [
        "markdown",
        "data_visualization",
        "context",
        "actions",
    ]
    assert lines_on_a_phone(part) <= SCREEN_LINES
    check_blocks(list(part.blocks), "message")


def test_the_one_row_opens_the_evidence_and_takes_feedback() -> None:
    row = rendered(answer()).blocks[-1]["elements"]

    assert isinstance(row, list)
    labels = [each["text"] for each in row if isinstance(each, dict)]
    assert [each["text"] for each in labels if isinstance(each, dict)] == [
        "Evidence (20)",
        "👍",
        "👎",
    ]


def test_notices_without_room_are_counted_and_behind_the_button() -> None:
    (footer,) = (block for block in rendered(answer()).blocks if block["type"] == "context")
    told = "\n".join(texts(footer))

    assert (told.count("ℹ️"), "7 more behind *Evidence*" in told) == (2, True)


def test_an_answer_without_results_opens_its_notices() -> None:
    notices = ("one", "two", "three")
    part = rendered(finished(text=TEXT, outcomes=(), evidence=(), notices=notices))

    assert "Notices (3)" in str(part.blocks[-1])
    assert "1 more behind *Notices*" in str(part.blocks)


def test_the_headline_is_the_text_of_the_notification() -> None:
    assert rendered(answer()).text.startswith(HEADLINE)


@pytest.mark.parametrize("end", TurnEnd)
def test_every_end_of_a_turn_has_one_row_of_buttons(end: TurnEnd) -> None:
    part = rendered(answer(end=end))
    rows = [at for at, block in enumerate(part.blocks) if block["type"] == "actions"]

    assert rows == [len(part.blocks) - 1]
    assert lines_on_a_phone(part) <= SCREEN_LINES
    assert "Evidence (20)" in str(part.blocks[-1])


TABLE = "\n".join(
    ["| Pod | Status |", "|---|---|", *(f"| checkout-{n} | **Running** |" for n in range(30))]
)
ITEMS = "\n".join(f"- service-{n} is slow (⚠ not in E1: {n})" for n in range(9))
LONG = f"{HEADLINE}\n\n{TABLE}\n\n{ITEMS}\n\n## Next\n\nAsk <!channel>, see https://evil.example/x."


def modelled(**changes: Any) -> TurnFinished:
    """What a model wrote at length."""
    return replace(answer(), **changes)


def test_a_long_answer_of_a_model_shows_a_screen_and_says_what_is_behind_the_button() -> None:
    part = rendered(modelled(text=LONG, is_kept=True))

    assert lines_on_a_phone(part) <= SCREEN_LINES
    assert str(part.blocks[0]["text"]).count("- service-") == 5
    assert "38 more lines behind *Evidence*, 4 statements not backed by it" in str(part.blocks)
    assert part.text.startswith(HEADLINE)
    check_blocks(list(part.blocks), "message")


def test_an_answer_without_results_names_its_button_for_the_rest() -> None:
    part = rendered(modelled(text=LONG, is_kept=True, evidence=(), outcomes=(), notices=()))

    assert "38 more lines behind *Whole answer*" in str(part.blocks)
    assert "Whole answer" in str(part.blocks[-1])


@pytest.mark.parametrize("text", [LONG, "\n".join(LONG for _ in range(400))])
def test_what_is_not_behind_the_button_is_in_the_thread(text: str) -> None:
    parts = render(view([modelled(text=text, is_kept=len(text) > len(LONG))]))

    shown = "\n".join(each for part in parts for block in part.blocks for each in texts(block))
    assert shown.count("checkout-29") == text.count("checkout-29")


def test_the_whole_answer_is_behind_evidence_safe_and_above_the_results() -> None:
    results = [Source(Evidence.of(n, each), {}) for n, each in enumerate(CALLS, 1)]
    shown = results_view(TURN, results, "kept", answer=whole_of(modelled(text=LONG)))
    check_view(shown, "modal")
    told = json.dumps(shown, ensure_ascii=False)

    assert "checkout-29  Running" in told
    assert "• service-8 is slow (⚠ not in E1: 8)" in told
    assert "*Next*" in told
    assert "Statements: 5 supported." in told
    assert told.index("checkout-29") < told.index("20 results")
    assert "<!channel>" not in told
    assert "`https://evil.example/x`" in told


@pytest.mark.parametrize("count", [1, 20, 250])
def test_the_longest_answer_that_is_folded_and_its_results_fit_one_modal(count: int) -> None:
    text = "\n\n".join(f"{n}. " + "the pool <&> is exhausted. " * 80 for n in range(20))
    results = [Source(Evidence.of(n, outcome(str(n))), {}) for n in range(1, count + 1)]
    final = modelled(text=text, claims=())
    shown = results_view(TURN, results, "kept", answer=whole_of(final))

    assert fits_view(whole_of(final))
    check_view(shown, "modal")
    assert len(json.dumps(shown)) < 250_000
    assert json.dumps(shown).count("exhausted") == text.count("exhausted")


def test_while_it_grows_an_answer_shows_its_newest_part_and_no_more_than_a_screen() -> None:
    events: list[TurnEvent] = [
        RoundStarted(1, "p", "m"), TextDelta("Let me look."), started("a"),
        RoundStarted(2, "p", "m"), TextDelta(f"{LONG}\n"),
    ]  # fmt: skip
    narrating, writing = (rendered_live(view(events[:n])) for n in (3, 5))

    assert "Let me look." in str(narrating.blocks)
    assert writing.text.startswith(HEADLINE)
    assert "Let me look." not in str(writing.blocks)
    assert lines_on_a_phone(writing) <= SCREEN_LINES


def rendered_live(live: AnswerView) -> Part:
    (part,) = render(live)
    return part
